"""Detects damage by checksums of an engine's files and cases, and bounds of the number of cases.

An engine writes sparse files of 32 MB even for few cases, so checksums skip blocks of zeros. Each
part of a file has a checksum, so that a sample of the parts can be compared. A damaged case may
still be readable, so the text and the vector of a case have a checksum each.
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
from casewright.stores.engines.folder import damaged_error

#: Size of a block, which is skipped if it has only zeros.
BLOCK_BYTES = 1 << 16
#: Size of the parts of a file, each of which has a checksum.
PART_BYTES = 1 << 23
#: Maximum number of parts that are compared before a load: 2 GiB, which takes half a second.
SAMPLED_PARTS = 256
#: The file that a clean close writes: the size of each file, and the checksum of each part.
CLOSED = "closed.json"
#: The field of a stored case's payload that has the case's two checksums.
CHECKSUMS = "sums"
#: The format of the bounds of the number of cases: the lower, the upper, and a checksum of both.
_COUNT_FORMAT = struct.Struct("<QQI")


def checksums_of(folder: Path) -> dict[str, list[int]]:
    """Return a list for each file, by path in the folder: size, and the checksums of the parts."""
    checksums = {}
    for file in folder.rglob("*"):
        if file.is_file():
            size = file.stat().st_size
            parts = [_part_checksum(file, number) for number in range(-(-size // PART_BYTES))]
            checksums[file.relative_to(folder).as_posix()] = [size, *parts]
    return checksums


def _first_changed(folder: Path, expected: Mapping[str, list[int]], max_parts: int | None) -> str:
    """Return the name of the first file that is missing or was changed; empty if there is none."""
    for name, (size, *_) in expected.items():
        file = folder / name
        if not file.is_file() or file.stat().st_size != size:
            return name
    parts = [(name, number) for name, entry in expected.items() for number in range(len(entry) - 1)]
    if max_parts is not None and len(parts) > max_parts:
        # All files of one part are compared: damage to these may end the process; damage to larger
        # files changes results.
        single_parts = [(name, 0) for name, entry in expected.items() if len(entry) == 2]
        other_parts = [part for part in parts if part not in set(single_parts)]
        sample_size = min(len(other_parts), max(0, max_parts - len(single_parts)))
        parts = single_parts + random.sample(other_parts, sample_size)
    for name, number in parts:
        if _part_checksum(folder / name, number) != expected[name][number + 1]:
            return name
    return ""


def closed_cleanly(
    folder: Path, shard: Path, error: Callable[[str], StoreDamagedError], max_parts: int | None
) -> bool:
    """Compare a shard's files with ``CLOSED``; return ``False`` if there are no checksums.

    Raise ``error(reason)`` if a file is missing or was changed. ``max_parts`` limits the
    comparison to files of one part and a random sample of the other parts; ``None`` compares all.
    """
    try:
        checksums = json.loads((folder / CLOSED).read_text(encoding="utf-8")).get("files")
        # An older version wrote other checksums.
        if checksums is None:
            return False
        name = _first_changed(shard, checksums, max_parts)
    except FileNotFoundError:
        return False
    except (ValueError, TypeError, AttributeError, LookupError) as cause:
        raise error(f"its {CLOSED} cannot be read") from cause
    if name:
        raise error(f"{name} is missing or was changed")
    return True


def blocks(file: int, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Yield offset and content of each non-zero block between two offsets of an open file.

    Holes of a sparse file are skipped like blocks of zeros, which a copy may have in their place.
    """
    offset, zeros = start, bytes(BLOCK_BYTES)
    while offset < end:
        try:
            offset = os.lseek(file, offset, os.SEEK_DATA) // BLOCK_BYTES * BLOCK_BYTES
        except OSError:
            return
        if offset >= end:
            return
        if (block := os.pread(file, BLOCK_BYTES, offset)) != zeros[: len(block)]:
            yield offset, block
        offset += BLOCK_BYTES


def copy_files(folder: Path, target: Path) -> Path:
    """Copy a folder's files, keep sparse files sparse, and return the target."""
    for walked_folder, _, names in os.walk(folder):
        old_folder = Path(walked_folder)
        new_folder = target / old_folder.relative_to(folder)
        new_folder.mkdir(parents=True)
        for name in names:
            old, new = old_folder / name, new_folder / name
            with open(old, "rb") as old_file, open(new, "wb") as new_file:
                size = os.fstat(old_file.fileno()).st_size
                for offset, block in blocks(old_file.fileno(), 0, size):
                    os.pwrite(new_file.fileno(), block, offset)
                new_file.truncate(size)
            shutil.copymode(old, new)
    return target


def _part_checksum(file: Path, number: int) -> int:
    checksum, start = 0, number * PART_BYTES
    with file.open("rb", buffering=0) as stream:
        for offset, block in blocks(stream.fileno(), start, start + PART_BYTES):
            checksum = zlib.crc32(block, zlib.crc32(offset.to_bytes(8, "little"), checksum))
    return checksum


def case_checksums(id_: str, texts: list[str], vector: NDArray[np.float32]) -> list[int]:
    """Return two checksums of a case: one of its id and stored texts, and one of its vector."""
    text = "\0".join([id_, *texts]).encode("utf-8", "surrogatepass")
    return [zlib.crc32(text), zlib.crc32(np.ascontiguousarray(vector, dtype="<f4").tobytes())]


def check_case(
    payload: Mapping[str, Any], id_: str, texts: list[str], vector: NDArray[np.float32] | None
) -> None:
    """Raise ``ValueError`` if a case's texts, or its vector if given, differ from its checksums."""
    # Cases of an older version have no checksums.
    if (checksums := payload.get(CHECKSUMS)) is None:
        return
    actual = case_checksums(id_, texts, np.zeros(0, np.float32) if vector is None else vector)
    if checksums[0] != actual[0]:
        raise ValueError("its text differs from what was written")
    if vector is not None and checksums[1] != actual[1]:
        raise ValueError("its vector differs from what was written")


def write_count(file: Path, minimum: int, maximum: int) -> None:
    """Write the lower and upper bound of the number of cases to a small file, in place.

    The bounds differ while cases are written, so that they hold even if the process is killed.
    """
    bounds = struct.pack("<QQ", max(0, minimum), maximum)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT, 0o666)
    try:
        os.pwrite(descriptor, bounds + zlib.crc32(bounds).to_bytes(4, "little"), 0)
    finally:
        os.close(descriptor)


def read_count(file: Path) -> tuple[int, int] | None:
    """Return the bounds that ``write_count`` wrote; ``None`` without a file."""
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return None
    if len(data) == _COUNT_FORMAT.size:
        minimum, maximum, checksum = _COUNT_FORMAT.unpack(data)
        if checksum == zlib.crc32(data[:16]):
            return minimum, maximum
    raise damaged_error(file.parent, f"its {file.name} cannot be read")
