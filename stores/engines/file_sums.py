"""Checksums of the files below a folder, as a clean close left them.

A file is summed in parts, so that of very much data a sample can be compared. Blocks of zeros do
not count.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Mapping
from pathlib import Path

from casewright.stores.engines.file_blocks import blocks

#: Bytes that a checksum is of.
PART = 1 << 23
#: Parts that are compared before a load: 2 GiB, half a second where they are in memory.
SAMPLE = 256
#: Of a file: its size, then the checksum of each part.
Sums = Mapping[str, "list[int]"]


def file_sums(folder: Path) -> dict[str, list[int]]:
    """Return size and checksums of every file, by its path from the folder on."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    return {file.relative_to(folder).as_posix(): sums_of_file(file) for file in files}


def sums_of_file(file: Path) -> list[int]:
    """Return a file's size, then the checksum of each of its parts."""
    size = file.stat().st_size
    return [size, *(part_sum(file, number) for number in range(-(-size // PART)))]


def changed(folder: Path, left: Sums, most: int | None = SAMPLE) -> str:
    """Return a file that is missing or is not as it was left; empty where there is none.

    Args:
        folder: Where the files are.
        left: What ``file_sums`` returned.
        most: How many parts to compare, of large files drawn at random; ``None`` for all.
    """
    for name, (size, *_) in left.items():
        file = folder / name
        if not file.is_file() or file.stat().st_size != size:
            return name
    parts = [(name, number) for name, (_, *sums) in left.items() for number in range(len(sums))]
    if most is not None and len(parts) > most:
        # An engine may die of a small file that is damaged, and finds the wrong cases by a large.
        small = [(name, 0) for name, sums in left.items() if len(sums) == 2]
        large = [part for part in parts if part not in set(small)]
        parts = small + random.sample(large, max(0, min(len(large), most - len(small))))
    for name, number in parts:
        if part_sum(folder / name, number) != left[name][number + 1]:
            return name
    return ""


def part_sum(file: Path, number: int) -> int:
    """Return the checksum of a file's part, counted from 0."""
    found = 0
    with file.open("rb", buffering=0) as opened:
        for at, block in blocks(opened.fileno(), number * PART, (number + 1) * PART):
            found = zlib.crc32(block, zlib.crc32(at.to_bytes(8, "little"), found))
    return found
