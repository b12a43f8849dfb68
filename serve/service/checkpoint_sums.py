"""Checkpoints with checksums, which the pages of a SQLite file lack."""

from __future__ import annotations

import zlib
from typing import Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from casewright.errors import StoreDamagedError

#: The suffix of the type of a value whose bytes end in a checksum, and the length of the checksum.
#: Values of earlier versions have no checksum.
SUFFIX, BYTES = "+crc32", 4


class SummedSerializer(JsonPlusSerializer):
    """LangGraph's serializer with a checksum after every value; it runs no code from a value."""

    def __init__(self) -> None:
        super().__init__(allowed_msgpack_modules=None)

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Return a value's type and its bytes."""
        kind, data = super().dumps_typed(obj)
        return kind + SUFFIX, bytes(data) + _checksum(kind, data)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Return the value; raise ``StoreDamagedError`` if the bytes are damaged."""
        kind, value = data
        if kind.endswith(SUFFIX):
            kind, value, checksum = kind.removesuffix(SUFFIX), value[:-BYTES], value[-BYTES:]
            if _checksum(kind, value) != checksum:
                raise damaged_thread("a checksum is wrong")
        try:
            return super().loads_typed((kind, value))
        except (ValueError, NotImplementedError) as error:
            raise damaged_thread(str(error)) from error


def damaged_thread(reason: str) -> StoreDamagedError:
    """Return the error for a thread whose stored data is damaged."""
    return StoreDamagedError(
        f"The stored thread is damaged: {reason}. Delete the thread, and ask again."
    )


def _checksum(kind: str, data: bytes) -> bytes:
    return zlib.crc32(data, zlib.crc32(kind.encode())).to_bytes(BYTES, "little")
