"""Where a network runs, and in which numbers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from casewright.errors import InputError

if TYPE_CHECKING:
    import torch

DTYPES = ("float32", "bfloat16", "float16")
_DEVICE = re.compile(r"cpu|mps|cuda(?::(\d+))?")


def check_names(device: str | None, dtype: str | None) -> None:
    """Raise ``InputError`` where there is no such device or number format anywhere."""
    if device is not None and not _DEVICE.fullmatch(device):
        raise InputError(f"There is no device {device!r}. Give cpu, cuda, cuda:1 or mps.")
    if dtype is not None and dtype not in DTYPES:
        raise InputError(f"There is no dtype {dtype!r}. Give {', '.join(DTYPES)}.")


def find_device(name: str | None) -> torch.device:
    """Return a device of this machine; without a name its first GPU of CUDA, or else the CPU.

    Raises:
        InputError: The machine has no such device.
    """
    import torch

    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name is None:
        return torch.device("cuda:0" if gpus else "cpu")
    kind, _, number = name.partition(":")
    if kind == "cuda" and int(number or 0) >= gpus:
        known = f"PyTorch sees {gpus} of them" if gpus else "PyTorch sees no GPU"
        raise InputError(f"This machine has no device {name!r}: {known}. Give cpu, or no device.")
    if kind == "mps" and not torch.backends.mps.is_available():
        raise InputError("This machine has no device 'mps'. Give cpu, or no device.")
    return torch.device("cuda", int(number or 0)) if kind == "cuda" else torch.device(kind)


def find_dtype(name: str | None, device: torch.device) -> torch.dtype:
    """Return a number format; without a name bfloat16 on CUDA, and float32 elsewhere."""
    import torch

    found = getattr(torch, name or ("bfloat16" if device.type == "cuda" else "float32"))
    assert isinstance(found, torch.dtype)
    return found
