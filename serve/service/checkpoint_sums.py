"""Serializes checkpoints with checksums, since SQLite keeps no checksums of a file's pages."""

from __future__ import annotations

import zlib
from typing import Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from casewright.errors import StoreDamagedError

#: Suffix of the type name of a value with a checksum. Older values have no checksum.
SUFFIX = "+crc32"
#: Number of bytes of a checksum.
CHECKSUM_BYTES = 4


class ChecksumSerializer(JsonPlusSerializer):
    """LangGraph's serializer with checksums; no function that a value names is called."""

    def __init__(self) -> None:
        super().__init__(allowed_msgpack_modules=None)

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Return a value's type name with ``SUFFIX``, and its bytes with a checksum."""
        type_name, data = super().dumps_typed(obj)
        return type_name + SUFFIX, bytes(data) + _checksum(type_name, data)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Return a value from its type name and bytes; raise ``StoreDamagedError`` for damage."""
        type_name, content = data
        if type_name.endswith(SUFFIX):
            type_name = type_name.removesuffix(SUFFIX)
            content, checksum = content[:-CHECKSUM_BYTES], content[-CHECKSUM_BYTES:]
            if _checksum(type_name, content) != checksum:
                raise damaged_thread_error("a checksum is wrong")
        try:
            return super().loads_typed((type_name, content))
        except (ValueError, NotImplementedError) as error:
            raise damaged_thread_error(str(error)) from error


def damaged_thread_error(reason: str) -> StoreDamagedError:
    """Return the error for a thread whose stored data is damaged."""
    return StoreDamagedError(
        f"The stored thread is damaged: {reason}. Delete the thread, and ask again."
    )


def _checksum(type_name: str, data: bytes) -> bytes:
    return zlib.crc32(data, zlib.crc32(type_name.encode())).to_bytes(CHECKSUM_BYTES, "little")
