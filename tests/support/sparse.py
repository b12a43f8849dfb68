"""Folders of files that are mostly holes: a store of a few cases has four of 32 MB."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

BLOCK = 65536
HOLE = bytes(BLOCK)


def blocks(file: Path) -> Iterator[tuple[int, bytes]]:
    """Yield where each block that is not zero starts, and what it holds."""
    with file.open("rb") as opened:
        place = 0
        while True:
            try:
                place = os.lseek(opened.fileno(), place, os.SEEK_DATA)
            except OSError:
                return
            place -= place % BLOCK
            opened.seek(place)
            block = opened.read(BLOCK)
            if block != HOLE[: len(block)]:
                yield place, block
            place += BLOCK


def contents(folder: Path) -> dict[str, tuple[int, tuple[tuple[int, bytes], ...]]]:
    """Return the size and the blocks of every file, to be compared."""
    return {
        str(file.relative_to(folder)): (file.stat().st_size, tuple(blocks(file)))
        for file in folder.rglob("*")
        if file.is_file()
    }


def copied(folder: Path, target: Path) -> Path:
    """Copy a folder as ``shutil.copytree`` does, but for the holes."""
    for file in [folder, *folder.rglob("*")]:
        copy = target / file.relative_to(folder)
        if file.is_dir():
            copy.mkdir(parents=True, exist_ok=True)
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        with copy.open("wb") as opened:
            for place, block in blocks(file):
                opened.seek(place)
                opened.write(block)
            opened.truncate(file.stat().st_size)
    return target
