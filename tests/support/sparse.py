"""Comparison and copies of sparse files: a store of a few cases has four sparse files of 32 MB."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

BLOCK = 65536
HOLE = bytes(BLOCK)


def blocks(file: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the offset and the bytes of each block that is not all zeros."""
    with file.open("rb") as opened:
        offset = 0
        while True:
            try:
                offset = os.lseek(opened.fileno(), offset, os.SEEK_DATA)
            except OSError:  # no data follows
                return
            offset -= offset % BLOCK
            opened.seek(offset)
            block = opened.read(BLOCK)
            if block != HOLE[: len(block)]:
                yield offset, block
            offset += BLOCK


def contents(folder: Path) -> dict[str, tuple[int, tuple[tuple[int, bytes], ...]]]:
    """Return the size and the blocks of each file of a folder, for comparison."""
    return {
        str(file.relative_to(folder)): (file.stat().st_size, tuple(blocks(file)))
        for file in folder.rglob("*")
        if file.is_file()
    }


def copied(folder: Path, target: Path) -> Path:
    """Copy a folder like ``shutil.copytree``, but keep the files sparse; return the copy."""
    for file in [folder, *folder.rglob("*")]:
        copy = target / file.relative_to(folder)
        if file.is_dir():
            copy.mkdir(parents=True, exist_ok=True)
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        with copy.open("wb") as opened:
            for offset, block in blocks(file):
                opened.seek(offset)
                opened.write(block)
            opened.truncate(file.stat().st_size)
    return target
