"""Files that are mostly holes: an engine's files of a few cases are four of 32 MB."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

#: Bytes of a block.
BLOCK = 1 << 16


def blocks(file: int, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Yield the blocks of an open file that are not zeros, and where each begins.

    What is a hole here may be written out in a copy, so that zeros are left out either way.

    Args:
        file: Its descriptor.
        start: Where the first block begins.
        end: Before which the last one does.
    """
    at, zeros = start, bytes(BLOCK)
    while at < end:
        try:
            at = os.lseek(file, at, os.SEEK_DATA)
        except OSError:
            # No data from here on.
            return
        at -= at % BLOCK
        if at >= end:
            return
        block = os.pread(file, BLOCK, at)
        if block != zeros[: len(block)]:
            yield at, block
        at += BLOCK


def copy_files(folder: Path, target: Path) -> Path:
    """Copy a folder's files, holes as holes, and return the target."""
    for source, _, names in os.walk(folder):
        there = target / Path(source).relative_to(folder)
        there.mkdir(parents=True)
        for name in names:
            with open(Path(source, name), "rb") as old, open(there / name, "wb") as new:
                size = os.fstat(old.fileno()).st_size
                for at, block in blocks(old.fileno(), 0, size):
                    os.pwrite(new.fileno(), block, at)
                new.truncate(size)
            shutil.copymode(Path(source, name), there / name)
    return target


def written_size(folder: Path) -> int:
    """Return how many bytes a folder's files take on the disk, without their holes."""
    return sum(file.stat().st_blocks * 512 for file in folder.rglob("*") if file.is_file())
