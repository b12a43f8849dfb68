"""Where a training runs and in which numbers, and whether this machine can do it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from casewright.errors import DependencyError, InputError
from casewright.finetune.recipe.training_section import LoraSection, ModelSection, TrainingSection
from casewright.finetune.training.ranks import local_rank, world
from casewright.planner.language_model.device import find_device, find_dtype

if TYPE_CHECKING:
    import torch

_NEEDED = ("datasets", "peft", "trl")


@dataclass(frozen=True, slots=True)
class Placement:
    """What a recipe's settings are on this machine.

    Attributes:
        device: Where this process trains.
        dtype: What is computed in.
        weights: What the base is held in: float32 where it is trained itself.
        saved: What a whole or a merged model is saved in.
        attention: transformers' name of how attention is computed.
    """

    device: torch.device
    dtype: torch.dtype
    weights: torch.dtype
    saved: torch.dtype
    attention: str


def find_placement(model: ModelSection, lora: LoraSection, training: TrainingSection) -> Placement:
    """Return where to train; nothing is loaded for it.

    Raises:
        InputError: The machine lacks the device, or the device cannot do what the recipe says.
        DependencyError: A package that the recipe needs is not installed.
    """
    if missing := [name for name in _NEEDED if find_spec(name) is None]:
        raise DependencyError(
            f"Training needs {', '.join(missing)}. Run: pip install 'casewright[finetune]'"
        )
    device = _device(model.device)
    on_cuda = device.type == "cuda"
    for setting, package, instead in _asked_of_cuda(model, training):
        if not on_cuda:
            raise InputError(
                f"{setting} needs CUDA, and PyTorch sees none here. Train on a machine with a "
                f"GPU, or {instead}."
            )
        if find_spec(package) is None:
            raise DependencyError(
                f"{setting} needs {package}. Run: pip install {package.replace('_', '-')}; "
                f"or {instead}."
            )
    import torch

    dtype = find_dtype(model.dtype, device)
    if on_cuda and dtype == torch.bfloat16 and not torch.cuda.is_bf16_supported():
        raise InputError(
            'model.dtype: this GPU does not compute in bfloat16. Set model.dtype = "float32".'
        )
    attention = training.attention
    if attention == "auto":
        flash = on_cuda and dtype != torch.float32 and find_spec("flash_attn") is not None
        # It knows no mask by which tails that share a head do not see each other.
        flash = flash and not training.shared_heads
        attention = "flash_attention_2" if flash else "sdpa"
    whole = lora.method == "full"
    saved = find_dtype(model.save_dtype, device) if model.save_dtype else dtype
    return Placement(device, dtype, torch.float32 if whole else dtype, saved, attention)


def _device(name: str | None) -> torch.device:
    # Each process of a launch has a GPU of its own, unless the recipe says which.
    if world() > 1 and name in (None, "cuda"):
        import torch

        if torch.cuda.is_available():
            return find_device(f"cuda:{local_rank()}")
    try:
        return find_device(name)
    except InputError as error:
        raise InputError(f"model.device: {error}") from error


def _asked_of_cuda(model: ModelSection, training: TrainingSection) -> list[tuple[str, str, str]]:
    """Return each setting that needs CUDA, the package that it needs, and what to do without."""
    asked = []
    if model.quantisation == "4bit":
        mend = 'set model.quantisation = "none"'
        asked.append(('model.quantisation = "4bit"', "bitsandbytes", mend))
    if training.optimiser == "adamw_8bit":
        mend = 'set training.optimiser = "adamw"'
        asked.append(('training.optimiser = "adamw_8bit"', "bitsandbytes", mend))
    if training.attention == "flash_attention_2":
        mend = 'set training.attention = "auto"'
        asked.append(('training.attention = "flash_attention_2"', "flash_attn", mend))
    return asked
