"""Whether a disk has room for what is to be written; what has none could end the process."""

from __future__ import annotations

import errno
import re
import shutil
from pathlib import Path

from casewright.errors import DiskFullError

#: Bytes that stay free: a file that is mapped into memory, and finds no room, ends the process.
SPARE = 8_000_000
#: What a library that hides an error's number says in its place.
SAID = re.compile(
    r"os error (?:28|30|122)\b|no space left|disk is full|read-only file system", re.I
)


def check_room(folder: Path, needed: int = 0) -> None:
    """Raise ``DiskFullError`` where a folder's disk has not what is needed, and some to spare.

    Args:
        folder: It, or a folder above it, is there.
        needed: In bytes.
    """
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    free, least = shutil.disk_usage(there).free, needed + SPARE
    if free < least:
        raise DiskFullError(
            f"The disk of {folder} has {free / 1e6:,.0f} MB free; {least / 1e6:,.0f} are needed. "
            "Make room, or have CASEWRIGHT_HOME name a folder on another disk; then run it again."
        )


def as_disk_error(error: BaseException) -> DiskFullError | None:
    """Return the error that says so where what failed is a full or a read-only disk."""
    cause: BaseException | None = error
    while cause is not None:
        number = cause.errno if isinstance(cause, OSError) else None
        if number in (errno.ENOSPC, errno.EDQUOT, errno.EROFS) or SAID.search(str(cause)):
            named = getattr(cause, "filename", None)
            return DiskFullError(
                f"A disk is full or read-only{f', that of {named}' if named else ''}: "
                f"{getattr(cause, 'strerror', None) or cause}. Make room, or have CASEWRIGHT_HOME "
                "and CASEWRIGHT_CACHE_FOLDER name folders that you may write to; then run it again."
            )
        cause = cause.__cause__ or cause.__context__
    return None
