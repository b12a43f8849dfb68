"""Finds the device and the dtype for a network on this machine."""

from __future__ import annotations

import re
import timeit
from functools import cache
from typing import TYPE_CHECKING

from casewright.errors import InputError
from casewright.extensions import missing_package

if TYPE_CHECKING:
    import torch

DTYPES = ("float32", "bfloat16", "float16", "int8")
_DEVICE = re.compile(r"cpu|mps|cuda(?::(\d+))?")


def check_names(device: str | None, dtype: str | None) -> None:
    """Raise ``InputError`` for the name of a device or dtype that no machine has."""
    if device is not None and not _DEVICE.fullmatch(device):
        raise InputError(f"There is no device {device!r}. Give cpu, cuda, cuda:1 or mps.")
    if dtype is not None and dtype not in DTYPES:
        raise InputError(f"There is no dtype {dtype!r}. Give {', '.join(DTYPES)}.")


def find_device(name: str | None) -> torch.device:
    """Return the named device; without a name, the first CUDA GPU or else the CPU.

    Raises:
        InputError: The machine lacks the device.
        DependencyError: torch is not installed.
    """
    try:
        import torch
    except ImportError as error:
        raise missing_package(error) or error from None

    gpu_count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name is None:
        return torch.device("cuda:0" if gpu_count else "cpu")
    kind, _, index = name.partition(":")
    if kind == "cuda" and int(index or 0) >= gpu_count:
        problem = f"PyTorch sees {gpu_count} of them" if gpu_count else "PyTorch sees no GPU"
        raise InputError(
            f"This machine has no device {name!r}: {problem}. Give cpu, or omit the device."
        )
    if kind == "mps" and not torch.backends.mps.is_available():
        raise InputError("This machine has no device 'mps'. Give cpu, or omit the device.")
    return torch.device("cuda", int(index or 0)) if kind == "cuda" else torch.device(kind)


def find_dtype(name: str | None, device: torch.device) -> torch.dtype:
    """Return the named dtype; without a name, bfloat16 on CUDA and float32 elsewhere.

    Raise ``InputError`` if the device does not support the named dtype.
    """
    import torch

    if name == "int8" and device.type != "cpu":
        raise InputError(f"Weights in int8 are for the CPU, not for {device}. Give bfloat16.")
    dtype = getattr(torch, name or ("bfloat16" if device.type == "cuda" else "float32"))
    assert isinstance(dtype, torch.dtype)
    return dtype


def fastest_dtype(device: torch.device) -> torch.dtype:
    """Return the dtype in which the device reads a prompt fastest.

    On a CPU, a measurement decides, since float32 is faster on some CPUs that support bfloat16.
    """
    return _fastest_on_cpu() if device.type == "cpu" else find_dtype(None, device)


@cache
def _fastest_on_cpu() -> torch.dtype:
    import torch

    def seconds(dtype: torch.dtype) -> float:
        # 128 tokens of a prompt, and a small model's layer with 576 inputs and 1536 outputs.
        states, weights = torch.ones(128, 576, dtype=dtype), torch.ones(1536, 576, dtype=dtype)
        return min(timeit.repeat(lambda: states @ weights.T, number=1, repeat=8))

    return min((torch.float32, torch.bfloat16), key=seconds)
