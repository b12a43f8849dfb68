"""The device, number formats and attention of a training, checked against this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from casewright.errors import DependencyError, InputError
from casewright.finetune.recipe.training_section import ModelSection, TrainingSection, cuda_settings
from casewright.planner.language_model.device import find_device, find_dtype

if TYPE_CHECKING:
    import torch


def rank() -> int:
    """Return the rank of this process in a distributed training, from 0."""
    return int(os.environ.get("RANK", "0"))


@dataclass(frozen=True, slots=True)
class Placement:
    """A recipe's device, number formats and attention on this machine."""

    device: torch.device
    dtype: torch.dtype
    save_dtype: torch.dtype
    attention: str  # the name of an attention in transformers

    @contextmanager
    def main_process_first(self) -> Iterator[bool]:
        """Run a block in the main process, which gets True, then in the others, which get False."""
        accelerate: Any = import_module("accelerate")
        with accelerate.PartialState(cpu=self.device.type == "cpu").main_process_first():
            yield not rank()


def find_placement(model: ModelSection, training: TrainingSection) -> Placement:
    """Return the placement of a recipe, without loading a model.

    Raises:
        InputError: The machine lacks the device, or the device does not support a setting.
        DependencyError: A package that the recipe needs is not installed.
    """
    if missing := [name for name in ("datasets", "peft", "trl") if find_spec(name) is None]:
        raise DependencyError(
            f"Training needs {', '.join(missing)}. Run: pip install 'casewright[finetune]'"
        )
    import torch

    device_name = model.device
    is_distributed = os.environ.get("WORLD_SIZE", "1") != "1"
    if is_distributed and device_name in (None, "cuda") and torch.cuda.is_available():
        # Each process has its own GPU, unless the recipe names one, such as cuda:1.
        device_name = f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
    try:
        device = find_device(device_name)
    except InputError as error:
        raise InputError(f"model.device: {error}") from error
    is_cuda = device.type == "cuda"
    for field, value, package, cpu_value in cuda_settings(model, training):
        if not is_cuda:
            raise InputError(
                f'{field} = "{value}" needs CUDA, and PyTorch sees none here. Train on a machine '
                f'with a GPU, or set {field} = "{cpu_value}".'
            )
        if find_spec(package) is None:
            raise DependencyError(
                f'{field} = "{value}" needs {package}. Run: pip install '
                f'{package.replace("_", "-")}; or set {field} = "{cpu_value}".'
            )
    dtype = find_dtype(model.dtype, device)
    if is_cuda and dtype == torch.bfloat16 and not torch.cuda.is_bf16_supported():
        raise InputError(
            'model.dtype: this GPU does not compute in bfloat16. Set model.dtype = "float32".'
        )
    attention = training.attention
    if attention == "auto":
        # FlashAttention has no mask that hides the tails of a shared head from each other.
        supports_flash = is_cuda and dtype != torch.float32 and not training.shared_heads
        has_flash = supports_flash and find_spec("flash_attn") is not None
        attention = "flash_attention_2" if has_flash else "sdpa"
    save_dtype = find_dtype(model.save_dtype, device) if model.save_dtype else dtype
    return Placement(device, dtype, save_dtype, attention)
