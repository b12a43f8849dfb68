"""Checksums of a stored case: of its text and of its vector, told apart, since both are read alone.

What damages a file within a case leaves a case that can be read, and is another one.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Where a stored payload has them: the text's, then the vector's.
SUMS = "sums"


def sums_of(id_: str, texts: list[str], vector: NDArray[np.float32]) -> list[int]:
    """Return the checksums of a case.

    Args:
        id_: Its id, which the text's covers too.
        texts: What is stored of it as text.
        vector: Its vector.
    """
    return [zlib.crc32("\0".join([id_, *texts]).encode("utf-8", "surrogatepass")), _sum(vector)]


def check_sums(
    stored: Mapping[str, Any], id_: str, texts: list[str], vector: NDArray[np.float32] | None
) -> None:
    """Raise ``ValueError`` where a case is not as it was written.

    One that was written before there were checksums has none, and passes. So does the vector of
    one that is read without.
    """
    if (kept := stored.get(SUMS)) is None:
        return
    found = sums_of(id_, texts, np.zeros(0, np.float32) if vector is None else vector)
    if kept[0] != found[0]:
        raise ValueError("its text is not as it was written")
    if vector is not None and kept[1] != found[1]:
        raise ValueError("its vector is not as it was written")


def _sum(vector: NDArray[np.float32]) -> int:
    return zlib.crc32(np.ascontiguousarray(vector, dtype="<f4").tobytes())
