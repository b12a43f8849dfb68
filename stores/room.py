"""Checks of free disk space: on a full disk, a write to a mapped file may end the process."""

from __future__ import annotations

import errno
import re
import shutil
from pathlib import Path

from casewright.errors import DiskFullError

#: Bytes that must stay free.
SPARE_BYTES = 8_000_000
#: Finds a disk error by its message, since some libraries hide the error number.
DISK_ERROR = re.compile(
    r"os error (?:28|30|122)\b|no space left|disk is full|read-only file system", re.I
)


def check_room(folder: Path, needed_bytes: int = 0) -> None:
    """Raise ``DiskFullError`` unless the folder's disk has ``needed_bytes + SPARE_BYTES`` free."""
    ancestor = folder
    while not ancestor.exists() and ancestor != ancestor.parent:
        ancestor = ancestor.parent
    free, minimum = shutil.disk_usage(ancestor).free, needed_bytes + SPARE_BYTES
    if free < minimum:
        raise DiskFullError(
            f"The disk of {folder} has {free / 1e6:,.0f} MB free; {minimum / 1e6:,.0f} are needed. "
            "Make room, or set CASEWRIGHT_HOME to a folder on another disk; then run it again."
        )


def as_disk_error(error: BaseException) -> DiskFullError | None:
    """Return a ``DiskFullError`` if a full or read-only disk caused an error; else ``None``."""
    cause: BaseException | None = error
    while cause is not None:
        code = cause.errno if isinstance(cause, OSError) else None
        if code in (errno.ENOSPC, errno.EDQUOT, errno.EROFS) or DISK_ERROR.search(str(cause)):
            file = getattr(cause, "filename", None)
            return DiskFullError(
                f"A disk is full or read-only{f', that of {file}' if file else ''}: "
                f"{getattr(cause, 'strerror', None) or cause}. Make room, or have CASEWRIGHT_HOME "
                "and CASEWRIGHT_CACHE_FOLDER name folders that you may write to; then run it again."
            )
        cause = cause.__cause__ or cause.__context__
    return None
