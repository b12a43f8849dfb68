"""Reads cases from the files of a damaged shard without Qdrant Edge, which may refuse the shard.

The pinned version of Edge writes a table with each payload's position, pages of LZ4-compressed
payloads, and chunks of vectors in the order of the table's rows. Callers compare the checksums.
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
#: Format of a row: 1 if it is used, page number, block number in the page, length in bytes.
ROW_FORMAT = struct.Struct("<4I")
#: Bytes of an entry of the id file by kind: 1 maps a number to a row, 2 maps a UUID to a row, 3
#: removes a number, 4 removes a UUID.
ENTRY_SIZES = {1: 13, 2: 21, 3: 9, 4: 17}
#: Bytes of a block of a page.
BLOCK_BYTES = 128
#: Maximum bytes of a chunk of vectors.
MAX_CHUNK_BYTES = 1 << 25
#: Maximum bytes of a decompressed payload.
MAX_PAYLOAD_BYTES = 1 << 28


def stored_cases(
    shard: Path, dimension: int, *, with_id: bool
) -> Iterator[tuple[dict[str, Any], NDArray[np.float32]] | None]:
    """Yield payload and vector of cases; ``None`` for a case that cannot be read.

    ``with_id=False`` yields the cases without an id: it was deleted with the case, or is lost.
    """
    for table_file in sorted(shard.glob("segments/*/payload_storage/tracker.dat")):
        segment, table = table_file.parents[1], table_file.read_bytes()
        rows_with_id = _rows_with_id(segment)
        (row_count,) = ROW_COUNT_FORMAT.unpack_from(table)
        start = ROW_COUNT_FORMAT.size
        table_rows = table[start : start + row_count * ROW_FORMAT.size]
        rows = ROW_FORMAT.iter_unpack(table_rows)
        for number, (is_used, page, block, length) in enumerate(rows):
            if not is_used or with_id != (number in rows_with_id):
                continue
            try:
                page_file = table_file.with_name(f"page_{page}.dat")
                payload = _decode_payload(_read_bytes(page_file, block * BLOCK_BYTES, length))
                yield payload, _read_vector(segment, number, dimension)
            # Decoding a damaged payload may raise any exception.
            except Exception:  # noqa: BLE001
                yield None


def _rows_with_id(segment: Path) -> set[int]:
    """Return the numbers of the rows that have an id, as far as the id file can be read."""
    try:
        data = (segment / "mutable_id_tracker.mappings").read_bytes()
    except OSError:
        return set()
    row_by_id: dict[bytes, int] = {}
    start = 0
    while start < len(data) and (size := ENTRY_SIZES.get(data[start])):
        kind, entry = data[start], data[start + 1 : start + size]
        row_by_id.pop(entry[:16] if kind in (2, 4) else entry[:8], None)
        if kind in (1, 2):
            row_by_id[entry[:-4]] = int.from_bytes(entry[-4:], "little")
        start += size
    return set(row_by_id.values())


def _decode_payload(compressed: bytes) -> dict[str, Any]:
    import lz4.block

    # The compressed bytes begin with the decompressed length.
    if int.from_bytes(compressed[:4], "little") > MAX_PAYLOAD_BYTES:
        raise ValueError
    return dict(json.loads(lz4.block.decompress(compressed)))


def _read_vector(segment: Path, row: int, dimension: int) -> NDArray[np.float32]:
    vector_bytes = 4 * dimension
    chunk, index = divmod(row, MAX_CHUNK_BYTES // vector_bytes)
    file = segment / "vector_storage" / "vectors" / f"chunk_{chunk}.mmap"
    return np.frombuffer(_read_bytes(file, index * vector_bytes, vector_bytes), dtype="<f4")


def _read_bytes(file: Path, start: int, length: int) -> bytes:
    with file.open("rb") as stream:
        stream.seek(start)
        data = stream.read(min(length, MAX_PAYLOAD_BYTES))
    if len(data) != length:
        raise ValueError
    return data
