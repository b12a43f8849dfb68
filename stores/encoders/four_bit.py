"""Packs matrices as four-bit integers: each row is cut into blocks, and each block has a scale.

A number is ``(integer - 8) * scale``, with an integer from 0 to 15. Two integers share a byte, the
first in the lower four bits.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from casewright.stores.encoders.onnx_graph import Floats

#: Number of columns of a block.
BLOCK = 32
#: The integer that stands for 0.
ZERO = 8
#: Factors by which ``pack`` tries to shrink a block's scale; the least squared error decides.
FACTORS = (1.0, 0.95, 0.9, 0.85, 0.8, 0.75)
#: A block becomes zeros if all its numbers are smaller: its scale would be too small for float16.
MIN_MAGNITUDE = 1e-4

Packed: TypeAlias = NDArray[np.uint8]
Scales: TypeAlias = NDArray[np.float16]


def pack(matrix: Floats) -> tuple[Packed, Scales]:
    """Return a matrix (rows, columns) as integers and scales.

    The packed integers have the shape (rows, blocks, BLOCK / 2), the scales (rows, blocks).
    ``columns`` must be a multiple of ``BLOCK``.
    """
    blocks = matrix.reshape(len(matrix), -1, BLOCK)
    largest = np.take_along_axis(blocks, np.abs(blocks).argmax(2, keepdims=True), 2)[..., 0]
    # At full scale, the number of largest magnitude becomes the integer 0, farthest from ZERO.
    full_scales = np.where(np.abs(largest) < MIN_MAGNITUDE, 1.0, -largest / ZERO).astype(np.float32)
    best_error = np.full(full_scales.shape, np.inf, np.float32)
    scales, integers = np.zeros(full_scales.shape, np.float16), np.zeros(blocks.shape, np.uint8)
    for factor in FACTORS:
        rounded_scales = (full_scales * np.float32(factor)).astype(np.float16)
        steps = rounded_scales.astype(np.float32)[..., None]
        rounded = np.clip(np.rint(blocks / steps) + ZERO, 0, 2 * ZERO - 1)
        error = (((rounded - ZERO) * steps - blocks) ** 2).sum(2)
        is_better = error < best_error
        best_error = np.where(is_better, error, best_error)
        scales = np.where(is_better, rounded_scales, scales)
        integers = np.where(is_better[..., None], rounded, integers).astype(np.uint8)
    packed: Packed = integers[..., 0::2] | integers[..., 1::2] << np.uint8(4)
    return packed, scales


def unpack(packed: Packed, scales: Scales) -> Floats:
    """Return the matrix (rows, columns) that ``pack`` gave as integers and scales, in float32."""
    integers = np.stack([packed & 15, packed >> 4], axis=-1).reshape(*packed.shape[:2], BLOCK)
    numbers: Floats = (integers.astype(np.float32) - ZERO) * scales[..., None].astype(np.float32)
    return numbers.reshape(len(packed), -1)
