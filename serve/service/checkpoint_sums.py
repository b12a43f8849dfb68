"""Serializes checkpoints with checksums, since SQLite stores none for the pages of a file."""

from __future__ import annotations

import zlib
from typing import Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from casewright.errors import StoreDamagedError

#: Suffix of a value's type name if its bytes end in a checksum; older values have none.
SUFFIX = "+crc32"
#: Number of bytes of a checksum.
CHECKSUM_BYTES = 4


class SummedSerializer(JsonPlusSerializer):
    """LangGraph's serializer with a checksum after every value; reading a value runs no code."""

    def __init__(self) -> None:
        super().__init__(allowed_msgpack_modules=None)

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Return a value's type and its bytes."""
        type_name, data = super().dumps_typed(obj)
        return type_name + SUFFIX, bytes(data) + _checksum(type_name, data)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Return the value; raise ``StoreDamagedError`` if the bytes are damaged."""
        type_name, content = data
        if type_name.endswith(SUFFIX):
            type_name = type_name.removesuffix(SUFFIX)
            content, checksum = content[:-CHECKSUM_BYTES], content[-CHECKSUM_BYTES:]
            if _checksum(type_name, content) != checksum:
                raise damaged_thread("a checksum is wrong")
        try:
            return super().loads_typed((type_name, content))
        except (ValueError, NotImplementedError) as error:
            raise damaged_thread(str(error)) from error


def damaged_thread(reason: str) -> StoreDamagedError:
    """Return the error for a thread whose stored data is damaged."""
    return StoreDamagedError(
        f"The stored thread is damaged: {reason}. Delete the thread, and ask again."
    )


def _checksum(type_name: str, data: bytes) -> bytes:
    return zlib.crc32(data, zlib.crc32(type_name.encode())).to_bytes(CHECKSUM_BYTES, "little")
