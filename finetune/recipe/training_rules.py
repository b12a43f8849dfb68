"""What the sections of a training ask of each other."""

from __future__ import annotations

from collections.abc import Iterator

from casewright.errors import InputError
from casewright.finetune.recipe.training_section import LoraSection, ModelSection, TrainingSection

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


def _violations(model: ModelSection, lora: LoraSection, training: TrainingSection) -> Iterator[str]:
    made = model.made
    # Without a device, the machine decides, which is looked at when the training starts.
    off_cuda = model.device is not None and not model.device.startswith("cuda")
    if model.quantisation == "4bit":
        if off_cuda:
            yield _needs_cuda('model.quantisation = "4bit"', model.device, '"none"')
        if lora.method == "full":
            yield (
                'model.quantisation: "4bit" weights cannot be trained themselves. '
                'Set lora.method = "lora", or model.quantisation = "none".'
            )
        if made is not None:
            yield (
                'model.quantisation: a new model is not worth "4bit", all its weights are random. '
                'Set model.quantisation = "none".'
            )
    if training.optimiser == "adamw_8bit" and off_cuda:
        yield _needs_cuda('training.optimiser = "adamw_8bit"', model.device, '"adamw"')
    if training.attention == "flash_attention_2":
        if off_cuda:
            yield _needs_cuda('training.attention = "flash_attention_2"', model.device, '"sdpa"')
        if model.dtype == "float32":
            yield (
                'training.attention: "flash_attention_2" computes in 16 bits. '
                'Set model.dtype = "bfloat16", or training.attention = "sdpa".'
            )
    if made is not None and training.max_length > made.positions:
        yield (
            f"training.max_length ({training.max_length}) is above model.new.positions "
            f"({made.positions}). Lower the one or raise the other."
        )
    if made is not None and made.tied and (same := shared_layer(lora)):
        yield (
            f"lora.modules_to_save holds {same!r}, which a new model with model.new.tied = true "
            "shares between reading and writing. Set model.new.tied = false."
        )
    if training.optimiser == "muon" and lora.method == "lora":
        yield (
            'training.optimiser: "muon" is for networks that are trained whole. '
            'Set lora.method = "full", or training.optimiser = "adamw".'
        )
    if training.shared_heads:
        yield from _not_with_shared_heads(training)
    packed = training.batch_per_device * training.max_length
    if training.packing and training.attention in ("sdpa", "eager") and packed > PACKED_TOKENS:
        yield (
            f"training.batch_per_device: {training.batch_per_device} packed rows of "
            f"{training.max_length} tokens are one row of {packed} without FlashAttention, and "
            f"{PACKED_TOKENS} are the most. Lower training.batch_per_device and raise "
            "training.gradient_accumulation, which makes the same steps."
        )


def _not_with_shared_heads(training: TrainingSection) -> Iterator[str]:
    others = {
        "packing": training.packing,
        "gradient_checkpointing": training.gradient_checkpointing,
        'attention = "flash_attention_2"': training.attention == "flash_attention_2",
    }
    for name, chosen in others.items():
        if chosen:
            yield (
                f"training.shared_heads and training.{name} do not go together. Remove one of them."
            )


def _needs_cuda(setting: str, device: str | None, instead: str) -> str:
    field = setting.partition(" ")[0]
    return (
        f"{field}: {setting} needs CUDA, and model.device is {device!r}. Set {field} = {instead}."
    )


def shared_layer(lora: LoraSection) -> str | None:
    """Return a layer to be trained whole that a network with tied embeddings shares, if any."""
    if lora.method == "full":
        return None
    return next((n for n in lora.modules_to_save if n in ("embed_tokens", "lm_head")), None)
