"""Reads cases from the files of a damaged Qdrant Edge shard, which Edge cannot load.

The pinned Edge version writes a table of the payloads' positions, pages of payloads compressed by
LZ4, and chunks of vectors in the table's order. Callers find damage by the cases' checksums.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Format of the table's number of rows.
ROW_COUNT_FORMAT = struct.Struct("<I")
#: Format of a row: whether it is used, page, block, length.
ROW_FORMAT = struct.Struct("<4I")
#: Bytes of an id entry by kind: 1 and 2 map a number or a UUID to a row; 3 and 4 remove such an id.
ENTRY_SIZES = {1: 13, 2: 21, 3: 9, 4: 17}
#: Bytes of a block of a page.
BLOCK_BYTES = 128
MAX_CHUNK_BYTES = 1 << 25
#: Maximum bytes of a decompressed payload.
MAX_PAYLOAD_BYTES = 1 << 28


def stored_cases(
    shard: Path, dimension: int, *, with_id: bool
) -> Iterator[tuple[dict[str, Any], NDArray[np.float32]] | None]:
    """Yield payload and vector of cases; ``None`` for a case that cannot be read.

    ``with_id=True`` yields cases with an id; ``False`` yields cases that were deleted or whose id
    is lost.
    """
    for table in sorted(shard.glob("segments/*/payload_storage/tracker.dat")):
        segment, table_bytes = table.parents[1], table.read_bytes()
        rows_with_id = _rows_with_id(segment)
        (row_count,) = ROW_COUNT_FORMAT.unpack_from(table_bytes)
        start = ROW_COUNT_FORMAT.size
        table_rows = table_bytes[start : start + row_count * ROW_FORMAT.size]
        entries = ROW_FORMAT.iter_unpack(table_rows)
        for row, (is_used, page, block, length) in enumerate(entries):
            if not is_used or with_id != (row in rows_with_id):
                continue
            try:
                page_file = table.with_name(f"page_{page}.dat")
                payload = _decode_payload(_read_bytes(page_file, block * BLOCK_BYTES, length))
                yield payload, _read_vector(segment, row, dimension)
            # Decoding a damaged payload may raise any exception.
            except Exception:  # noqa: BLE001
                yield None


def _rows_with_id(segment: Path) -> set[int]:
    """Return the rows with ids, as far as the id file can be read."""
    try:
        data = (segment / "mutable_id_tracker.mappings").read_bytes()
    except OSError:
        return set()
    rows: dict[bytes, int] = {}
    start = 0
    while start < len(data) and (size := ENTRY_SIZES.get(data[start])):
        kind, entry = data[start], data[start + 1 : start + size]
        rows.pop(entry[:16] if kind in (2, 4) else entry[:8], None)
        if kind in (1, 2):
            rows[entry[:-4]] = int.from_bytes(entry[-4:], "little")
        start += size
    return set(rows.values())


def _decode_payload(compressed: bytes) -> dict[str, Any]:
    import lz4.block

    if int.from_bytes(compressed[:4], "little") > MAX_PAYLOAD_BYTES:
        raise ValueError
    return dict(json.loads(lz4.block.decompress(compressed)))


def _read_vector(segment: Path, row: int, dimension: int) -> NDArray[np.float32]:
    size = 4 * dimension
    chunk, index = divmod(row, MAX_CHUNK_BYTES // size)
    file = segment / "vector_storage" / "vectors" / f"chunk_{chunk}.mmap"
    return np.frombuffer(_read_bytes(file, index * size, size), dtype="<f4")


def _read_bytes(file: Path, start: int, length: int) -> bytes:
    with file.open("rb") as stream:
        stream.seek(start)
        data = stream.read(min(length, MAX_PAYLOAD_BYTES))
    if len(data) != length:
        raise ValueError
    return data
