"""Checkpoints with checksums: the pages of a SQLite file have none."""

from __future__ import annotations

import zlib
from typing import Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from casewright.errors import StoreDamagedError

#: Ends the type of a value that has its checksum behind it. Earlier versions wrote none.
SUMMED, BYTES = "+crc32", 4


class SummedSerializer(JsonPlusSerializer):
    """LangGraph's serializer with a checksum behind every value; calls nothing that one names."""

    def __init__(self) -> None:
        super().__init__(allowed_msgpack_modules=None)

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Return a value's type and its bytes."""
        kind, data = super().dumps_typed(obj)
        return kind + SUMMED, bytes(data) + _sum(kind, data)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Return the value.

        Raises:
            StoreDamagedError: It is not as it was written.
        """
        kind, value = data
        if kind.endswith(SUMMED):
            kind, value, kept = kind.removesuffix(SUMMED), value[:-BYTES], value[-BYTES:]
            if _sum(kind, value) != kept:
                raise damaged_thread("a checksum is another")
        try:
            return super().loads_typed((kind, value))
        except (ValueError, NotImplementedError) as error:
            raise damaged_thread(str(error)) from error


def damaged_thread(what: str) -> StoreDamagedError:
    """Return the error of a thread that is not as it was written."""
    return StoreDamagedError(
        f"What is kept of the thread is damaged: {what}. Delete the thread, and ask anew."
    )


def _sum(kind: str, data: bytes) -> bytes:
    return zlib.crc32(data, zlib.crc32(kind.encode())).to_bytes(BYTES, "little")
