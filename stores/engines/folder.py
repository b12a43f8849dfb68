"""A store's folder: its lock and its errors."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from casewright.errors import InputError, StoreDamagedError, StoreError, StoreLockedError
from casewright.stores.room import as_disk_error

#: The file that is locked before an engine reads the folder, until the store closes. The engines'
#: locks are too late: Qdrant's local mode locks after it has read the data, which may be old then,
#: and Edge may damage a shard before it finds that another process uses the shard.
LOCK_FILE = ".casewright.lock"


def hold_folder(folder: Path, seconds: float) -> IO[str]:
    """Lock a folder, created if needed, until the returned file is closed or the process ends.

    Raise ``StoreLockedError`` if another process holds the folder for longer than ``seconds``,
    ``InputError`` if ``folder`` is a file, ``StoreError`` if it cannot be created or used.
    """
    deadline = time.monotonic() + seconds
    with folder_errors(folder):
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} is a file. Give a folder for the case store.")
        folder.mkdir(parents=True, exist_ok=True)
        # The import of portalocker looks for a writable folder, so import it only when needed.
        import portalocker

        file = (folder / LOCK_FILE).open("a")
        while True:
            try:
                portalocker.lock(file, portalocker.LOCK_EX | portalocker.LOCK_NB)
                return file
            except portalocker.AlreadyLocked as error:
                if time.monotonic() >= deadline:
                    file.close()
                    raise in_use_error(folder) from error
                time.sleep(0.05)
            except portalocker.LockException as error:
                file.close()
                problem = f"The store's folder {folder} cannot be locked: {error}."
                advice = "Choose a folder on a disk whose files can be locked."
                raise StoreError(f"{problem} {advice}") from error


@contextmanager
def folder_errors(folder: Path) -> Iterator[None]:
    """Convert an ``OSError`` in the context to a ``StoreError``."""
    try:
        yield
    except OSError as error:
        if disk_error := as_disk_error(error):
            raise disk_error from error
        problem = f"The store's folder {folder} cannot be used: {error.strerror or error}."
        raise StoreError(f"{problem} Choose a folder that you may write to.") from error


def in_use_error(folder: Path) -> StoreLockedError:
    """Return the error for a folder that another process holds."""
    problem = f"Another process holds the store's folder {folder}."
    advice = "Wait until it ends, use another folder, or let both use a Qdrant server by its URL."
    return StoreLockedError(f"{problem} {advice}")


def damaged_error(folder: Path, reason: str) -> StoreDamagedError:
    """Return the error for a folder whose files cannot be read."""
    problem = f"The store's folder {folder} is damaged: {reason}."
    advice = (
        "Restore it from a copy; or run casewright repair, which keeps the undamaged cases; or, if "
        "that fails, delete the folder and build the store again."
    )
    return StoreDamagedError(f"{problem} {advice}")
