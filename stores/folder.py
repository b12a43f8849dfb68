"""A store's folder: held by one process, looked over, and opened."""

from __future__ import annotations

import json
import time
import warnings
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING

from casewright.errors import InputError, StoreDamagedError, StoreError, StoreLockedError

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

#: Held from before Qdrant reads the folder until the store closes. Qdrant's own lock comes too
#: late for that: it is taken after loading, so that who waited for it has loaded what was before.
LOCK_FILE = ".casewright.lock"
QDRANT_LOCK_FILE = ".lock"

# Said to whoever opens 20,000 cases. Set once, since catch_warnings is not thread-safe.
warnings.filterwarnings("ignore", "Local mode is not recommended", UserWarning)


def open_folder(folder: Path, lock_seconds: float) -> tuple[QdrantClient, IO[str]]:
    """Open a folder, made where it is not there, and return its client and its lock.

    The lock is released by closing it, or by the end of the process.

    Raises:
        InputError: It is a file.
        StoreLockedError: Another process holds it for longer than ``lock_seconds``.
        StoreDamagedError: Its files cannot be read; they are left as they are.
        StoreError: It cannot be made or used.
    """
    deadline = time.monotonic() + lock_seconds
    with ExitStack() as undo:
        try:
            if folder.exists() and not folder.is_dir():
                raise InputError(f"{folder} is a file. Give a folder for the case store.")
            folder.mkdir(parents=True, exist_ok=True)
            lock = undo.enter_context(_locked(folder, LOCK_FILE, deadline))
            # Other users of Qdrant know its own lock only: wait for them before loading.
            _locked(folder, QDRANT_LOCK_FILE, deadline).close()
            client = _client(folder)
        except OSError as error:
            raise StoreError(
                f"The store's folder {folder} cannot be used: {error.strerror or error}. "
                "Choose a folder that you may write to."
            ) from error
        undo.pop_all()
        return client, lock


def _locked(folder: Path, name: str, deadline: float) -> IO[str]:
    # It looks for a folder that it can write to when imported, so only where it is needed.
    import portalocker

    file = (folder / name).open("a")
    while True:
        try:
            portalocker.lock(file, portalocker.LOCK_EX | portalocker.LOCK_NB)
            return file
        except portalocker.AlreadyLocked as error:
            if time.monotonic() >= deadline:
                file.close()
                raise _in_use(folder) from error
            time.sleep(0.05)
        except portalocker.LockException as error:
            file.close()
            raise StoreError(
                f"The store's folder {folder} cannot be locked: {error}. "
                "Choose a folder on a disk whose files can be locked."
            ) from error


def _client(folder: Path) -> QdrantClient:
    from qdrant_client import QdrantClient

    try:
        _check_whole(folder)
        return QdrantClient(path=str(folder))
    except (OSError, StoreError):
        raise
    # Local mode unpickles what it stored: a damaged file can raise anything.
    except Exception as error:
        if "already accessed" in str(error):
            raise _in_use(folder) from error
        raise _damaged(folder, f"{type(error).__name__}: {str(error)[:200]}") from error


def _check_whole(folder: Path) -> None:
    """Find what Qdrant would take for a new, empty folder or collection, and write over."""
    collections, meta = folder / "collection", folder / "meta.json"
    if meta.exists():
        for name in json.loads(meta.read_text(encoding="utf-8"))["collections"]:
            storage = collections / name / "storage.sqlite"
            if not storage.is_file() or not storage.stat().st_size:
                raise _damaged(folder, f"the cases of its collection {name!r} are missing")
    elif collections.is_dir() and any(collections.iterdir()):
        raise _damaged(folder, "it has collections, and its meta.json is missing")


def _in_use(folder: Path) -> StoreLockedError:
    return StoreLockedError(
        f"Another process holds the store's folder {folder}. Wait until it ends, use another "
        "folder, or let both use a Qdrant server by its URL."
    )


def _damaged(folder: Path, reason: str) -> StoreDamagedError:
    return StoreDamagedError(
        f"The store's folder {folder} is damaged: {reason}. "
        "Restore it from a copy, or delete the folder and build the store again."
    )
