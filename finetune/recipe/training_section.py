"""The sections ``[model]``, ``[lora]`` and ``[training]`` of a recipe, and their rules.

``Recipe.read`` checks these rules. ``find_placement`` checks the recipe against the machine.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, field_validator, model_validator

from casewright.errors import InputError
from casewright.finetune.section import Section
from casewright.planner.language_model.device import check_names

#: The value of ``model.base`` for a new model with random weights.
NEW = "new"
#: The highest number of steps or checkpoints that the libraries support.
_MAX_COUNT = 10**9

_LayerName = Annotated[str, StringConstraints(min_length=1)]
#: Maximum number of tokens in a batch of packed rows without FlashAttention, since the attention
#: mask then has the square of this number of entries.
MAX_PACKED_TOKENS = 32_768


class NewModelSection(Section):
    """``[model.new]``: a new Mistral, with a tokenizer that is trained on the training set.

    Attributes:
        hidden: Size of a hidden state.
        heads: Number of attention heads, each of size ``hidden / heads``.
        kv_heads: Number of key-value heads (grouped-query attention).
        intermediate: Inner size of a layer's feed-forward network.
        vocabulary: Number of tokens, including bytes and special tokens.
        positions: Maximum number of tokens of a text.
        tied: True if input and output embeddings are one matrix.
    """

    hidden: int = Field(default=256, ge=16, le=16_384, serialization_alias="hidden_size")
    layers: int = Field(default=6, ge=1, le=128, serialization_alias="num_hidden_layers")
    heads: int = Field(default=8, ge=1, le=256, serialization_alias="num_attention_heads")
    kv_heads: int = Field(default=4, ge=1, le=256, serialization_alias="num_key_value_heads")
    intermediate: int = Field(
        default=688, ge=16, le=65_536, serialization_alias="intermediate_size"
    )
    vocabulary: int = Field(default=4096, ge=260, le=262_144, serialization_alias="vocab_size")
    positions: int = Field(
        default=4096, ge=64, le=1_048_576, serialization_alias="max_position_embeddings"
    )
    tied: bool = Field(default=True, serialization_alias="tie_word_embeddings")

    @property
    def config(self) -> dict[str, Any]:
        """The arguments of ``MistralConfig``."""
        return self.model_dump(by_alias=True)

    @model_validator(mode="after")
    def _check_heads(self) -> Self:
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
    """``[model]``: the model that a training starts from.

    Attributes:
        base: A model's folder, its name at Hugging Face, or ``new``.
        new: The settings of a new model.
        device: ``cpu``, ``cuda``, ``cuda:1``, ``mps``; by default the first CUDA device, or the
            CPU.
        dtype: The dtype of computation; by default bfloat16 on CUDA and float32 elsewhere. Unless
            the base has 4 bits, trained weights are float32: bfloat16 would round small steps to 0.
        save_dtype: The dtype of saved weights; by default unchanged, or ``dtype`` after merging.
        quantisation: ``4bit`` stores the base's weights in 4 bits (QLoRA: Dettmers et al. 2023).
    """

    base: str = Field(default=NEW, min_length=1)
    new: NewModelSection | None = None
    device: str | None = None
    dtype: Literal["float32", "bfloat16"] | None = None
    save_dtype: Literal["float32", "bfloat16"] | None = None
    quantisation: Literal["none", "4bit"] = "none"

    @property
    def new_base(self) -> NewModelSection | None:
        """The settings of a new model; ``None`` for an existing one."""
        return (self.new or NewModelSection()) if self.base == NEW else None

    def based_on(self, base: str) -> ModelSection:
        """Return the section with another base."""
        new = self.new if base == NEW else None
        return self.model_copy(update={"base": base, "new": new})

    @field_validator("device")
    @classmethod
    def _check_device(cls, device: str | None) -> str | None:
        try:
            check_names(device, dtype=None)
        except InputError as error:
            raise ValueError(str(error)) from error
        return device

    @model_validator(mode="after")
    def _check_new(self) -> Self:
        if self.new is not None and self.base != NEW:
            raise ValueError(
                f"new has settings for a new model, and base is {self.base!r}. "
                'Remove [model.new], or set base = "new".'
            )
        return self


class LoraSection(Section):
    """``[lora]``: the adapter (LoRA: Hu et al. 2021).

    Attributes:
        r: Rank of the adapter's matrices.
        alpha: The product of the matrices is scaled by ``alpha / r``.
        dropout: Dropout of the adapter's inputs.
        target_modules: Layers with an adapter, by the ends of their names; ``all-linear`` means all
            linear layers except the output embeddings.
        modules_to_save: Layers that are trained completely and saved with the adapter.
    """

    method: Literal["lora"] = "lora"
    r: int = Field(default=16, ge=1, le=1024)
    alpha: int = Field(default=32, ge=1, le=65_536, serialization_alias="lora_alpha")
    dropout: float = Field(default=0.05, ge=0, lt=1, serialization_alias="lora_dropout")
    target_modules: Literal["all-linear"] | tuple[_LayerName, ...] = "all-linear"
    modules_to_save: tuple[_LayerName, ...] = ()

    @model_validator(mode="after")
    def _check_modules(self) -> Self:
        targets = () if isinstance(self.target_modules, str) else self.target_modules
        if self.target_modules == ():
            raise ValueError('target_modules names no layer. Take "all-linear".')
        # The loss multiplies by the weights of ``lm_head`` directly, without their adapter.
        if "lm_head" in targets:
            raise ValueError(
                "target_modules cannot hold lm_head, whose adapter would not be trained. "
                'Set modules_to_save = ["lm_head"], which trains it whole.'
            )
        if shared := sorted(set(targets) & set(self.modules_to_save)):
            raise ValueError(
                f"modules_to_save holds {shared[0]!r}, which target_modules holds too. "
                "Leave it out of one of them."
            )
        return self


class TrainingSection(Section):
    """``[training]``: the settings of a training.

    Attributes:
        epochs: Passes over the training set; by default 1, unless ``steps`` is set.
        steps: Optimiser steps, instead of ``epochs``.
        learning_rate: The highest learning rate.
        schedule: The decay of the learning rate after the warm-up.
        warmup: Share of the steps in which the learning rate rises from 0.
        batch_per_device: Number of examples, or of packed rows, in a batch.
        gradient_accumulation: Number of batches in a step.
        loss: ``completion`` trains on completions; ``plans`` also on the plans that prompts show as
            examples and plan cases. The validation loss is always of completions.
        shared_heads: Compute a prompt's head (its constant prefix) once for all examples of a batch
            that share the head. ``data.tevo.queries_per_toolbox`` makes examples share heads.
        row_tokens: With ``shared_heads``, a row is a sequence of heads, each with its examples. On
            CUDA, this is the maximum number of tokens in a row; on the CPU, a row has one head.
        max_length: Maximum number of tokens of prompt and completion; longer examples are left out
            and counted. With packing, it is also the length of a row.
        packing: Put several examples into one row, without attention between them, to save
            padding. Without FlashAttention, the cost is quadratic in the row's length.
        packing_strategy: ``bfd`` (best fit, decreasing) never splits an example.
        gradient_checkpointing: Recompute inner states instead of storing them.
        weight_decay: AdamW's weight decay.
        beta2: AdamW's second decay rate.
        max_grad_norm: The norm to which larger gradients are clipped.
        save_steps: Steps between checkpoints; by default one checkpoint after every epoch.
        eval_steps: Steps between validations; by default one before and one after training.
        log_steps: Steps between lines of the log.
        checkpoints_kept: Number of stored checkpoints; at least two, as the last may be damaged.
        seed: The seed of new weights, the order of the examples and dropout.
        optimiser: The optimiser; ``adamw_8bit`` needs bitsandbytes and CUDA.
        attention: ``auto`` is FlashAttention on CUDA if installed, else PyTorch's attention.
    """

    epochs: float | None = Field(default=None, gt=0, le=10_000)
    steps: int | None = Field(default=None, ge=1, le=_MAX_COUNT)
    learning_rate: float = Field(default=2e-4, gt=0, le=1)
    schedule: Literal["linear", "cosine", "constant"] = "cosine"
    warmup: float = Field(default=0.03, ge=0, lt=1)
    batch_per_device: int = Field(default=1, ge=1, le=65_536)
    gradient_accumulation: int = Field(default=1, ge=1, le=65_536)
    loss: Literal["completion", "plans"] = "completion"
    shared_heads: bool = False
    row_tokens: int = Field(default=16_384, ge=1024, le=1_048_576)
    max_length: int = Field(default=2048, ge=16, le=1_048_576)
    packing: bool = False
    packing_strategy: Literal["bfd"] = "bfd"
    gradient_checkpointing: bool = False
    weight_decay: float = Field(default=0.0, ge=0, lt=1)
    beta2: float = Field(default=0.999, gt=0, lt=1)
    max_grad_norm: float = Field(default=1.0, gt=0, le=1e9)
    save_steps: int | None = Field(default=None, ge=1, le=_MAX_COUNT)
    eval_steps: int | None = Field(default=None, ge=1, le=_MAX_COUNT)
    log_steps: int = Field(default=10, ge=1, le=_MAX_COUNT)
    checkpoints_kept: int = Field(default=2, ge=2, le=_MAX_COUNT)
    seed: int = Field(default=0, ge=0, lt=2**32)
    optimiser: Literal["adamw", "adamw_fused", "adamw_8bit", "adafactor"] = "adamw"
    attention: Literal["auto", "sdpa", "eager", "flash_attention_2"] = "auto"

    @model_validator(mode="after")
    def _check_length(self) -> Self:
        if self.epochs is not None and self.steps is not None:
            raise ValueError("epochs and steps are both given. Remove one of them.")
        return self


def cuda_settings(
    model: ModelSection, training: TrainingSection
) -> list[tuple[str, str, str, str]]:
    """Return the set values that need CUDA: field, value, package, and a value for the CPU."""
    settings = (
        (model.quantisation, ("model.quantisation", "4bit", "bitsandbytes", "none")),
        (training.optimiser, ("training.optimiser", "adamw_8bit", "bitsandbytes", "adamw")),
        (training.attention, ("training.attention", "flash_attention_2", "flash_attn", "sdpa")),
    )
    return [setting for value, setting in settings if value == setting[1]]


def check_together(model: ModelSection, lora: LoraSection, training: TrainingSection) -> None:
    """Raise ``InputError`` if sections contradict each other."""
    new_model = model.new_base
    is_quantised, is_flash = model.quantisation == "4bit", training.attention == "flash_attention_2"
    # Without ``model.device``, ``find_placement`` checks the machine.
    if model.device is not None and not model.device.startswith("cuda"):
        for field, value, _, cpu_value in cuda_settings(model, training):
            raise InputError(
                f'{field}: {field} = "{value}" needs CUDA, and model.device is {model.device!r}. '
                f'Set {field} = "{cpu_value}".'
            )
    if is_quantised and new_model is not None:
        raise InputError(
            'model.quantisation: "4bit" freezes the base, and the weights of a new one are random. '
            'Set model.quantisation = "none".'
        )
    if is_flash and model.dtype == "float32":
        raise InputError(
            'training.attention: "flash_attention_2" computes in 16 bits. '
            'Set model.dtype = "bfloat16", or training.attention = "sdpa".'
        )
    if new_model is not None and training.max_length > new_model.positions:
        raise InputError(
            f"training.max_length ({training.max_length}) is above model.new.positions "
            f"({new_model.positions}). Lower the one or raise the other."
        )
    if new_model is not None and new_model.tied and (shared := shared_layer(lora)):
        raise InputError(
            f"lora.modules_to_save holds {shared!r}, which a new model with model.new.tied = true "
            "shares between input and output embeddings. Set model.new.tied = false."
        )
    for name, is_set in (
        ("packing", training.packing),
        ("gradient_checkpointing", training.gradient_checkpointing),
        ('attention = "flash_attention_2"', is_flash),
    ):
        if training.shared_heads and is_set:
            raise InputError(
                f"training.shared_heads and training.{name} do not go together. Remove one of them."
            )
    tokens = training.batch_per_device * training.max_length
    if training.packing and training.attention in ("sdpa", "eager") and tokens > MAX_PACKED_TOKENS:
        raise InputError(
            f"training.batch_per_device: {training.batch_per_device} packed rows of "
            f"{training.max_length} tokens are one row of {tokens} without FlashAttention, and "
            f"{MAX_PACKED_TOKENS} are the most. Lower training.batch_per_device and raise "
            "training.gradient_accumulation, which makes the same steps."
        )


def shared_layer(lora: LoraSection) -> str | None:
    """Return the first layer of ``modules_to_save`` whose weights may be tied, or ``None``."""
    return next((n for n in lora.modules_to_save if n in ("embed_tokens", "lm_head")), None)
