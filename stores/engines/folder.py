"""A store's folder: held by one process, and, where qdrant-client wrote it, looked over."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from casewright.errors import InputError, StoreDamagedError, StoreError, StoreLockedError
from casewright.stores.engines.local_points import points_only
from casewright.stores.room import as_disk_error

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

#: Held from before an engine reads the folder until the store closes. Qdrant's own lock comes too
#: late for that: it is taken after loading, so that who waited for it has loaded what was before.
#: Edge's even damages the shard that it finds loaded.
LOCK_FILE = ".casewright.lock"
QDRANT_LOCK_FILE = ".lock"

# Said to whoever opens 20,000 cases. Set once, since catch_warnings is not thread-safe.
warnings.filterwarnings("ignore", "Local mode is not recommended", UserWarning)


def hold_folder(folder: Path, deadline: float) -> IO[str]:
    """Hold a folder, made where it is not there; closing the file, or the process's end, lets go.

    Args:
        folder: What to hold.
        deadline: Until when to wait for another process, by ``time.monotonic``.

    Raises:
        InputError: It is a file.
        StoreLockedError: Another process holds it beyond the deadline.
        StoreError: It cannot be made or used.
    """
    with usable(folder):
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} is a file. Give a folder for the case store.")
        folder.mkdir(parents=True, exist_ok=True)
        return _locked(folder, LOCK_FILE, deadline)


def open_client(folder: Path, deadline: float) -> QdrantClient:
    """Open a folder that is held by qdrant-client's local mode.

    Raises:
        StoreLockedError: Another user of Qdrant has it open beyond the deadline.
        StoreDamagedError: Its files cannot be read; they are left as they are.
        StoreError: It cannot be used.
    """
    with usable(folder):
        # Other users of Qdrant know its own lock only: wait for them before loading.
        _locked(folder, QDRANT_LOCK_FILE, deadline).close()
        return _client(folder)


@contextmanager
def usable(folder: Path) -> Iterator[None]:
    """Raise errors of the system as ``StoreError``."""
    try:
        yield
    except OSError as error:
        if full := as_disk_error(error):
            raise full from error
        raise StoreError(
            f"The store's folder {folder} cannot be used: {error.strerror or error}. "
            "Choose a folder that you may write to."
        ) from error


def in_use(folder: Path) -> StoreLockedError:
    """Return the error for a folder that another process holds."""
    return StoreLockedError(
        f"Another process holds the store's folder {folder}. Wait until it ends, use another "
        "folder, or let both use a Qdrant server by its URL."
    )


def damaged(folder: Path, reason: str) -> StoreDamagedError:
    """Return the error for a folder whose files cannot be read."""
    return StoreDamagedError(
        f"The store's folder {folder} is damaged: {reason}. "
        "Restore it from a copy, or delete the folder and build the store again."
    )


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
                raise in_use(folder) from error
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
        with points_only():
            return QdrantClient(path=str(folder))
    except (OSError, StoreError):
        raise
    # Of a damaged file anything can be raised.
    except Exception as error:
        if "already accessed" in str(error):
            raise in_use(folder) from error
        raise damaged(folder, f"{type(error).__name__}: {str(error)[:200]}") from error


def _check_whole(folder: Path) -> None:
    """Find what Qdrant would take for a new, empty folder or collection, and write over."""
    collections, meta = folder / "collection", folder / "meta.json"
    if meta.exists():
        for name in json.loads(meta.read_text(encoding="utf-8"))["collections"]:
            storage = collections / name / "storage.sqlite"
            if not storage.is_file() or not storage.stat().st_size:
                raise damaged(folder, f"the cases of its collection {name!r} are missing")
    elif collections.is_dir() and any(collections.iterdir()):
        raise damaged(folder, "it has collections, and its meta.json is missing")
