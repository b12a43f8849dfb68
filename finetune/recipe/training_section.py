"""The sections ``[model]``, ``[lora]`` and ``[training]`` of a recipe.

What can be told from a recipe alone is checked when it is read: here what concerns one section,
in ``training_rules`` what concerns several. Whether this machine can do it is checked when a
training starts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, field_validator, model_validator

from casewright.errors import InputError
from casewright.finetune.section import Section
from casewright.planner.language_model.device import check_names

#: The base that is made for a training, with random weights.
NEW = "new"
#: Above what any machine counts to, and below what a library stumbles on.
_MOST = 10**9

_LayerName = Annotated[str, StringConstraints(min_length=1)]


class NewModelSection(Section):
    """``[model.new]``: a new Mistral, whose tokenizer is trained on the training set.

    Attributes:
        hidden: Numbers that a token's state has.
        layers: Layers.
        heads: Attention heads; each has ``hidden / heads`` numbers.
        kv_heads: Heads with keys and values of their own, which the others share.
        intermediate: Numbers between the two halves of a layer's feed-forward network.
        vocabulary: Tokens, bytes and special ones included.
        positions: Longest text in tokens.
        tied: The matrix that reads tokens is also the one that writes them.
    """

    hidden: int = Field(default=256, ge=16, le=16_384)
    layers: int = Field(default=6, ge=1, le=128)
    heads: int = Field(default=8, ge=1, le=256)
    kv_heads: int = Field(default=4, ge=1, le=256)
    intermediate: int = Field(default=688, ge=16, le=65_536)
    vocabulary: int = Field(default=4096, ge=260, le=262_144)
    positions: int = Field(default=4096, ge=64, le=1_048_576)
    tied: bool = True

    @property
    def config(self) -> dict[str, Any]:
        """The settings by the names that ``MistralConfig`` has for them."""
        return {
            "vocab_size": self.vocabulary,
            "hidden_size": self.hidden,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "intermediate_size": self.intermediate,
            "max_position_embeddings": self.positions,
            "tie_word_embeddings": self.tied,
        }

    @model_validator(mode="after")
    def _heads_fit(self) -> Self:
        if self.hidden % (2 * self.heads):
            raise ValueError(
                f"hidden ({self.hidden}) must be an even multiple of heads ({self.heads}). "
                f"Take hidden = {2 * self.heads * max(1, round(self.hidden / 2 / self.heads))}."
            )
        if self.heads % self.kv_heads:
            raise ValueError(
                f"kv_heads ({self.kv_heads}) must divide heads ({self.heads}). "
                f"Take kv_heads = {self.heads}, or a divisor of it."
            )
        return self


class ModelSection(Section):
    """``[model]``: what the training starts from.

    Attributes:
        base: A model's folder, as the working directory has it, its name at Hugging Face, or
            ``new``.
        new: The settings of a new model; defaults where ``base`` is ``new`` and this is absent.
        device: ``cpu``, ``cuda``, ``cuda:1``, ``mps``; by default CUDA's first where there is one.
        dtype: What is computed in, ``float32`` or ``bfloat16``; by default bfloat16 on CUDA and
            float32 elsewhere. Weights that are trained are kept in float32 either way, since
            steps smaller than a rounding would be lost.
        save_dtype: What is saved in; by default ``dtype``, and for an adapter float32.
        quantisation: ``4bit`` keeps the base in four bits a weight (QLoRA: Dettmers et al. 2023).
    """

    base: str = Field(default=NEW, min_length=1)
    new: NewModelSection | None = None
    device: str | None = None
    dtype: Literal["float32", "bfloat16"] | None = None
    save_dtype: Literal["float32", "bfloat16"] | None = None
    quantisation: Literal["none", "4bit"] = "none"

    @property
    def made(self) -> NewModelSection | None:
        """The settings of a new model; ``None`` for one that there is."""
        return (self.new or NewModelSection()) if self.base == NEW else None

    def based_on(self, base: str) -> ModelSection:
        """Return the section for another base; ``new`` keeps the settings of a new one."""
        new = self.new if base == NEW else None
        return self.model_copy(update={"base": base, "new": new})

    @field_validator("device")
    @classmethod
    def _known(cls, device: str | None) -> str | None:
        try:
            check_names(device, None)
        except InputError as error:
            raise ValueError(str(error)) from error
        return device

    @model_validator(mode="after")
    def _new_alone(self) -> Self:
        if self.new is not None and self.base != NEW:
            raise ValueError(
                f"new has settings for a new model, and base is {self.base!r}. "
                'Remove [model.new], or set base = "new".'
            )
        return self


class LoraSection(Section):
    """``[lora]``: what of the base is trained (LoRA: Hu et al. 2021).

    Attributes:
        method: ``lora``, an adapter beside the base.
        r: Rank of the adapter's matrices.
        alpha: Their product is scaled by ``alpha / r``.
        dropout: Share of an adapter's inputs that is left out while training.
        target_modules: Layers that have an adapter, by the ends of their names; ``all-linear`` for
            all but the one that writes tokens.
        modules_to_save: Layers that are trained whole and saved with the adapter.
    """

    method: Literal["lora"] = "lora"
    r: int = Field(default=16, ge=1, le=1024)
    alpha: int = Field(default=32, ge=1, le=65_536)
    dropout: float = Field(default=0.05, ge=0, lt=1)
    target_modules: Literal["all-linear"] | tuple[_LayerName, ...] = "all-linear"
    modules_to_save: tuple[_LayerName, ...] = ()

    @model_validator(mode="after")
    def _modules_apart(self) -> Self:
        targets = () if isinstance(self.target_modules, str) else self.target_modules
        if self.target_modules == ():
            raise ValueError('target_modules names no layer. Take "all-linear".')
        # The loss multiplies by this matrix directly: an adapter on it would not be trained.
        if "lm_head" in targets:
            raise ValueError(
                "target_modules cannot hold lm_head, whose adapter would not be trained. "
                'Set modules_to_save = ["lm_head"], which trains it whole.'
            )
        if both := sorted(set(targets) & set(self.modules_to_save)):
            raise ValueError(
                f"modules_to_save holds {both[0]!r}, which target_modules holds too. "
                "Leave it out of one of them."
            )
        return self


class TrainingSection(Section):
    """``[training]``: how it is trained.

    Attributes:
        epochs: Passes over the training set; 1 where neither this nor ``steps`` is given.
        steps: Optimiser steps, instead of ``epochs``.
        learning_rate: The highest one.
        schedule: How it falls after the warm-up.
        warmup: Share of the steps in which it rises from 0.
        batch_per_device: Examples, or packed rows, that one device computes at once.
        gradient_accumulation: Such batches that make one step.
        loss: What it is taken of: the ``completion``, or also the ``plans`` that the prompt shows
            as examples and plan cases. The validation loss is of completions either way.
        shared_heads: Compute the head of a prompt once for the examples that share it; the steps
            are those of computing it for each. ``batch_per_device`` counts the examples of one
            head, of which a row is then made; see ``data.tevo.queries_per_toolbox``.
        max_length: Tokens of prompt and completion; a longer example is left out and counted.
            With packing also the length of a row.
        packing: Put several examples into one row, which do not see each other. It saves padding;
            without FlashAttention a row's attention costs its length squared.
        packing_strategy: ``bfd`` (best fit, decreasing) keeps examples whole, TRL's others do not.
        gradient_checkpointing: Compute inner states twice, and keep few of them.
        weight_decay: AdamW's.
        beta2: AdamW's second decay rate.
        max_grad_norm: Gradients longer than this are shortened to it.
        save_steps: Steps between checkpoints; by default one at the end of every epoch.
        eval_steps: Steps between measurements on the validation set; by default before and after.
        log_steps: Steps between lines of the log.
        checkpoints_kept: The last ones; two at least, since the last one may be damaged.
        seed: Draws new weights, the order of the examples and what is dropped out.
        optimiser: ``adamw_8bit`` needs bitsandbytes and CUDA.
        attention: ``auto`` takes FlashAttention on CUDA where it is installed, else PyTorch's own.
    """

    epochs: float | None = Field(default=None, gt=0, le=10_000)
    steps: int | None = Field(default=None, ge=1, le=_MOST)
    learning_rate: float = Field(default=2e-4, gt=0, le=1)
    schedule: Literal["linear", "cosine", "constant"] = "cosine"
    warmup: float = Field(default=0.03, ge=0, lt=1)
    batch_per_device: int = Field(default=1, ge=1, le=65_536)
    gradient_accumulation: int = Field(default=1, ge=1, le=65_536)
    loss: Literal["completion", "plans"] = "completion"
    shared_heads: bool = False
    max_length: int = Field(default=2048, ge=16, le=1_048_576)
    packing: bool = False
    packing_strategy: Literal["bfd"] = "bfd"
    gradient_checkpointing: bool = False
    weight_decay: float = Field(default=0.0, ge=0, lt=1)
    beta2: float = Field(default=0.999, gt=0, lt=1)
    max_grad_norm: float = Field(default=1.0, gt=0, le=1e9)
    save_steps: int | None = Field(default=None, ge=1, le=_MOST)
    eval_steps: int | None = Field(default=None, ge=1, le=_MOST)
    log_steps: int = Field(default=10, ge=1, le=_MOST)
    checkpoints_kept: int = Field(default=2, ge=2, le=_MOST)
    seed: int = Field(default=0, ge=0, lt=2**32)
    optimiser: Literal["adamw", "adamw_fused", "adamw_8bit", "adafactor"] = "adamw"
    attention: Literal["auto", "sdpa", "eager", "flash_attention_2"] = "auto"

    @model_validator(mode="after")
    def _one_length(self) -> Self:
        if self.epochs is not None and self.steps is not None:
            raise ValueError("epochs and steps are both given. Remove one of them.")
        return self


#: Tokens that a batch of packed rows may have without FlashAttention: the batch is one row, and
#: the mask that keeps its examples apart has the square of these.
PACKED_TOKENS = 32_768


def check_together(model: ModelSection, lora: LoraSection, training: TrainingSection) -> None:
    """Refuse sections that do not fit each other; nothing is loaded or imported for it.

    Raises:
        InputError: The first of them, with the field and what to do.
    """
    for message in _violations(model, lora, training):
        raise InputError(message)


def cuda_settings(
    model: ModelSection, training: TrainingSection
) -> list[tuple[str, str, str, str]]:
    """Return each setting that needs CUDA: field, value, its package, and a value for the CPU."""
    known = (
        ("model.quantisation", model.quantisation, "4bit", "bitsandbytes", "none"),
        ("training.optimiser", training.optimiser, "adamw_8bit", "bitsandbytes", "adamw"),
        ("training.attention", training.attention, "flash_attention_2", "flash_attn", "sdpa"),
    )
    return [
        (field, value, package, instead)
        for field, value, cuda, package, instead in known
        if value == cuda
    ]


def _violations(model: ModelSection, lora: LoraSection, training: TrainingSection) -> Iterator[str]:
    new = model.made
    four_bit, flash = model.quantisation == "4bit", training.attention == "flash_attention_2"
    # Without a device, the machine decides, which is looked at when the training starts.
    if model.device is not None and not model.device.startswith("cuda"):
        for field, value, _, instead in cuda_settings(model, training):
            yield (
                f'{field}: {field} = "{value}" needs CUDA, and model.device is {model.device!r}. '
                f'Set {field} = "{instead}".'
            )
    if four_bit and new is not None:
        yield (
            'model.quantisation: a new model is not worth "4bit", all its weights are random. '
            'Set model.quantisation = "none".'
        )
    if flash and model.dtype == "float32":
        yield (
            'training.attention: "flash_attention_2" computes in 16 bits. '
            'Set model.dtype = "bfloat16", or training.attention = "sdpa".'
        )
    if new is not None and training.max_length > new.positions:
        yield (
            f"training.max_length ({training.max_length}) is above model.new.positions "
            f"({new.positions}). Lower the one or raise the other."
        )
    if new is not None and new.tied and (same := shared_layer(lora)):
        yield (
            f"lora.modules_to_save holds {same!r}, which a new model with model.new.tied = true "
            "shares between reading and writing. Set model.new.tied = false."
        )
    for name, chosen in (
        ("packing", training.packing),
        ("gradient_checkpointing", training.gradient_checkpointing),
        ('attention = "flash_attention_2"', flash),
    ):
        if training.shared_heads and chosen:
            yield (
                f"training.shared_heads and training.{name} do not go together. Remove one of them."
            )
    packed = training.batch_per_device * training.max_length
    if training.packing and training.attention in ("sdpa", "eager") and packed > PACKED_TOKENS:
        yield (
            f"training.batch_per_device: {training.batch_per_device} packed rows of "
            f"{training.max_length} tokens are one row of {packed} without FlashAttention, and "
            f"{PACKED_TOKENS} are the most. Lower training.batch_per_device and raise "
            "training.gradient_accumulation, which makes the same steps."
        )


def shared_layer(lora: LoraSection) -> str | None:
    """Return a layer to be trained whole that a network with tied embeddings shares, if any."""
    return next((n for n in lora.modules_to_save if n in ("embed_tokens", "lm_head")), None)
