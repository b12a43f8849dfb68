"""Serialises ONNX models that have only the kinds of nodes and attributes of Casewright's graphs.

The package onnx would add 27 MB, and would import protobuf's Python code at each start. A
field's value follows its number in ``onnx.proto``; the tests read the bytes with onnx.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Codes of the tensors' element types.
_TYPES = {"float32": 1, "int8": 3, "int32": 6}
#: The version of the file format.
_IR_VERSION = 8
#: The version of ONNX's operators.
_OPSET = 17


def node(
    operator: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    domain: str = "",
    **settings: float | int | Sequence[int],
) -> bytes:
    """Return a serialised node: an operator with its settings as attributes."""
    return _message(
        *((1, name) for name in inputs),
        *((2, name) for name in outputs),
        (4, operator),
        *((5, _attribute(name, value)) for name, value in settings.items()),
        (7, domain),
    )


def model(
    nodes: Iterable[bytes],
    inputs: Mapping[str, type],
    outputs: Mapping[str, type],
    weights: Mapping[str, NDArray[Any]],
    domain: str,
) -> bytes:
    """Return a serialised model; ``nodes`` come from ``node``, ``weights`` are not in the bytes.

    Inputs and outputs map names to NumPy types. Operators are ONNX's own, and those of ``domain``.
    """
    graph = _message(
        *((1, item) for item in nodes),
        (2, "casewright"),
        *((5, _external_tensor(name, weight)) for name, weight in weights.items()),
        *((11, _value_info(name, dtype)) for name, dtype in inputs.items()),
        *((12, _value_info(name, dtype)) for name, dtype in outputs.items()),
    )
    opsets = [_message((1, name), (2, v)) for name, v in (("", _OPSET), (domain, 1))]
    return _message((1, _IR_VERSION), (7, graph), *((8, opset) for opset in opsets))


def _attribute(name: str, value: float | int | Sequence[int]) -> bytes:
    """Return an attribute; field 20 is its type: 1 for a float, 2 an integer, 7 integers."""
    if isinstance(value, float):
        return _message((1, name), (2, value), (20, 1))
    if isinstance(value, int):
        return _message((1, name), (3, value), (20, 2))
    return _message((1, name), *((8, number) for number in value), (20, 7))


def _value_info(name: str, dtype: type) -> bytes:
    """Return the name and the element type of an input or an output."""
    return _message((1, name), (2, _message((1, _message((1, _TYPES[np.dtype(dtype).name]))))))


def _external_tensor(name: str, weight: NDArray[Any]) -> bytes:
    """Return a tensor without numbers (field 14: external); the session gets these as an array."""
    location = {"location": "memory", "offset": "0", "length": str(weight.nbytes)}
    return _message(
        *((1, size) for size in weight.shape),
        (2, _TYPES[weight.dtype.name]),
        (8, name),
        *((13, _message((1, key), (2, value))) for key, value in location.items()),
        (14, 1),
    )


def _message(*fields: tuple[int, str | bytes | int | float]) -> bytes:
    """Return fields in protobuf's encoding: a field's number is joined with a code of its type."""
    parts = []
    for number, value in fields:
        if isinstance(value, float):
            parts += [_varint(number << 3 | 5), struct.pack("<f", value)]
        elif isinstance(value, int):
            parts += [_varint(number << 3), _varint(value)]
        else:
            content = value.encode() if isinstance(value, str) else value
            parts += [_varint(number << 3 | 2), _varint(len(content)), content]
    return b"".join(parts)


def _varint(number: int) -> bytes:
    # A negative number is encoded as its two's complement in 64 bits.
    number %= 1 << 64
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    return bytes([*encoded, number])
