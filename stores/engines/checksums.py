"""Checksums of an engine's files and cases, and bounds of the number of cases, to detect damage.

For a few cases, an engine writes four sparse files of 32 MB, so checksums skip blocks of zeros.
Each part of a file has a checksum, so that a sample of the parts of a large file can be compared.
A damaged case may still be readable but different. Its text and its vector have separate checksums,
since one may be read without the other.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.errors import StoreDamagedError
from casewright.stores.engines.folder import damaged

#: Bytes of a block of zeros, and of a part with a checksum.
BLOCK, PART = 1 << 16, 1 << 23
#: Number of parts that are compared before a load: 2 GiB, half a second from memory.
SAMPLE = 256
#: A file's path to its size, followed by the checksum of each part.
Sums = Mapping[str, "list[int]"]


def file_sums(folder: Path) -> dict[str, list[int]]:
    """Return the size and the checksums of every file, by its path relative to the folder."""
    return {
        file.relative_to(folder).as_posix(): _sums(file)
        for file in folder.rglob("*")
        if file.is_file()
    }


def _changed(folder: Path, sums: Sums, most: int | None) -> str:
    """Return the first file that is missing or differs from ``file_sums``; empty if all match."""
    for name, (size, *_) in sums.items():
        file = folder / name
        if not file.is_file() or file.stat().st_size != size:
            return name
    parts = [(name, number) for name, (_, *rest) in sums.items() for number in range(len(rest))]
    if most is not None and len(parts) > most:
        # Damage in a small file may end the process; damage in a large file changes results.
        small = [(name, 0) for name, numbers in sums.items() if len(numbers) == 2]
        large = [part for part in parts if part not in set(small)]
        parts = small + random.sample(large, max(0, min(len(large), most - len(small))))
    for name, number in parts:
        if _part_sum(folder / name, number) != sums[name][number + 1]:
            return name
    return ""


def closed_cleanly(
    folder: Path, files: Path, damaged: Callable[[str], StoreDamagedError], most: int | None
) -> bool:
    """Compare files with a folder's ``CLOSED``; return ``False`` if there was no clean close.

    ``damaged`` returns the error for a reason. ``most`` is the number of parts to compare: all
    parts of small files, and a random sample of the parts of large files; ``None`` compares all.
    """
    try:
        sums = json.loads((folder / CLOSED).read_text(encoding="utf-8")).get("files")
        # An older version wrote other checksums.
        if sums is None:
            return False
        name = _changed(files, sums, most)
    except FileNotFoundError:
        return False
    except (ValueError, TypeError, AttributeError, LookupError) as error:
        raise damaged(f"its {CLOSED} cannot be read") from error
    if name:
        raise damaged(f"{name} is missing or was changed")
    return True


def blocks(file: int, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Yield offset and content of the non-zero blocks of an open file between two offsets.

    A copy of a sparse file may have written zeros instead of a hole, so both are skipped.
    """
    offset, zeros = start, bytes(BLOCK)
    while offset < end:
        try:
            offset = os.lseek(file, offset, os.SEEK_DATA)
        except OSError:
            # No more data.
            return
        offset -= offset % BLOCK
        if offset >= end:
            return
        block = os.pread(file, BLOCK, offset)
        if block != zeros[: len(block)]:
            yield offset, block
        offset += BLOCK


def copy_files(folder: Path, target: Path) -> Path:
    """Copy a folder's files, keep sparse files sparse, and return the target."""
    for source, _, names in os.walk(folder):
        copy = target / Path(source).relative_to(folder)
        copy.mkdir(parents=True)
        for name in names:
            with open(Path(source, name), "rb") as old, open(copy / name, "wb") as new:
                size = os.fstat(old.fileno()).st_size
                for offset, block in blocks(old.fileno(), 0, size):
                    os.pwrite(new.fileno(), block, offset)
                new.truncate(size)
            shutil.copymode(Path(source, name), copy / name)
    return target


def _sums(file: Path) -> list[int]:
    size = file.stat().st_size
    return [size, *(_part_sum(file, number) for number in range(-(-size // PART)))]


def _part_sum(file: Path, number: int) -> int:
    total = 0
    with file.open("rb", buffering=0) as opened:
        for offset, block in blocks(opened.fileno(), number * PART, (number + 1) * PART):
            total = zlib.crc32(block, zlib.crc32(offset.to_bytes(8, "little"), total))
    return total


#: The file with the checksums of a clean close.
CLOSED = "closed.json"
#: The field of a stored payload with the checksums of text and vector.
SUMS = "sums"
#: Least and greatest number of cases, and the checksum of both.
_COUNT = struct.Struct("<QQI")


def sums_of(id_: str, texts: list[str], vector: NDArray[np.float32]) -> list[int]:
    """Return two checksums of a case: of its id and stored texts, and of its vector."""
    text = "\0".join([id_, *texts]).encode("utf-8", "surrogatepass")
    return [zlib.crc32(text), zlib.crc32(np.ascontiguousarray(vector, dtype="<f4").tobytes())]


def check_sums(
    stored: Mapping[str, Any], id_: str, texts: list[str], vector: NDArray[np.float32] | None
) -> None:
    """Raise ``ValueError`` if a case does not match its checksums.

    Cases of an older version have no checksums, and pass. A vector of ``None`` is not checked.
    """
    if (sums := stored.get(SUMS)) is None:
        return
    actual = sums_of(id_, texts, np.zeros(0, np.float32) if vector is None else vector)
    if sums[0] != actual[0]:
        raise ValueError("its text differs from what was written")
    if vector is not None and sums[1] != actual[1]:
        raise ValueError("its vector differs from what was written")


def write_count(file: Path, least: int, most: int) -> None:
    """Write bounds of the number of cases to a file of a few bytes, in place.

    The bounds are a range while cases are written, and the exact number afterwards, so that they
    are right whenever the process is killed.
    """
    numbers = struct.pack("<QQ", max(0, least), most)
    opened = os.open(file, os.O_WRONLY | os.O_CREAT, 0o666)
    try:
        os.pwrite(opened, numbers + zlib.crc32(numbers).to_bytes(4, "little"), 0)
    finally:
        os.close(opened)


def read_count(file: Path) -> tuple[int, int] | None:
    """Return the bounds of ``write_count``; ``None`` without a file.

    Raise ``StoreDamagedError`` if the file is damaged.
    """
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return None
    if len(data) != _COUNT.size or zlib.crc32(data[:16]) != _COUNT.unpack(data)[2]:
        raise damaged(file.parent, f"its {file.name} cannot be read")
    least, most, _ = _COUNT.unpack(data)
    return least, most
