"""Safetensors read into float32 arrays without torch: NumPy has no bfloat16, which ships."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.errors import InputError, told

Weights = dict[str, NDArray[np.float32]]
_INDEX, _WHOLE = "model.safetensors.index.json", "model.safetensors"
#: By the format's names. A bfloat16 is the upper half of a float32.
_TYPES = {"F32": "<f4", "F16": "<f2", "BF16": "<u2"}


def read_weights(folder: Path) -> Weights:
    """Return a model's weights by their names, in float32.

    Raises:
        InputError: A file is not there, is damaged, or holds numbers of another type.
    """
    index = folder / _INDEX
    try:
        names = [_WHOLE]
        if index.is_file():
            names = sorted(set(json.loads(index.read_bytes())["weight_map"].values()))
        weights: Weights = {}
        for name in names:
            weights |= _read(folder / name)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"The weights in {str(folder)!r} cannot be read: {told(error).rstrip('.')}. "
            "Copy the folder anew."
        ) from error
    return weights


def _read(file: Path) -> Weights:
    from safetensors import SafetensorError, deserialize

    read: Callable[[bytes], list[tuple[str, dict[str, Any]]]] = deserialize
    try:
        told = read(file.read_bytes())
    except SafetensorError as error:
        raise ValueError(str(error)) from error
    return {name: _array(tensor) for name, tensor in told}


def _array(tensor: Mapping[str, Any]) -> NDArray[np.float32]:
    stored = np.frombuffer(tensor["data"], _TYPES[tensor["dtype"]])
    if tensor["dtype"] == "BF16":
        stored = (stored.astype("<u4") << 16).view("<f4")
    return stored.astype(np.float32).reshape(tensor["shape"])
