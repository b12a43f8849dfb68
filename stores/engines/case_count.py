"""How many cases a collection has, beside it: what is found when it is opened must agree."""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path

from casewright.stores.engines.folder import damaged

#: The fewest and the most cases, and the checksum of both.
FORM = struct.Struct("<QQI")


class CaseCount:
    """A file of a few bytes, written in place: before a write as a range, behind it exactly.

    So whatever ends the process, the number of cases lies in the range that is left.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def write(self, least: int, most: int) -> None:
        """Write that there are at least and at most so many cases."""
        numbers = struct.pack("<QQ", max(0, least), most)
        file = os.open(self._file, os.O_WRONLY | os.O_CREAT, 0o666)
        try:
            os.pwrite(file, numbers + zlib.crc32(numbers).to_bytes(4, "little"), 0)
        finally:
            os.close(file)

    def read(self) -> tuple[int, int] | None:
        """Return the fewest and the most cases; ``None`` where the file is not there.

        Raises:
            StoreDamagedError: It cannot be read.
        """
        try:
            data = self._file.read_bytes()
        except FileNotFoundError:
            return None
        if len(data) != FORM.size or zlib.crc32(data[:16]) != FORM.unpack(data)[2]:
            raise damaged(self._file.parent, f"its {self._file.name} cannot be read")
        least, most, _ = FORM.unpack(data)
        return least, most
