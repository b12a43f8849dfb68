"""A store's folder: its lock, its errors, and opening it safely by qdrant-client's local mode.

Local mode pickles every point. Reading a pickle may call any function that it names, so that a
writer of the folder could run code in a reader's process.
"""

from __future__ import annotations

import json
import pickle
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import IO, TYPE_CHECKING, Any

from casewright.errors import InputError, StoreDamagedError, StoreError, StoreLockedError
from casewright.stores.room import as_disk_error

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

#: Held from before an engine reads the folder until the store closes. Qdrant's own lock is too
#: late: it is taken after loading, so that a waiting process has loaded old data. Edge's even
#: damages a shard that another process has loaded.
LOCK_FILE = ".casewright.lock"
QDRANT_LOCK_FILE = ".lock"
#: The only class in a point's pickle; the rest is texts, numbers, lists and mappings.
POINT = ("qdrant_client.http.models.models", "PointStruct")
_unpickling = threading.Lock()

# A warning at 20,000 cases. Set once, since catch_warnings is not thread-safe.
warnings.filterwarnings("ignore", "Local mode is not recommended", UserWarning)


def hold_folder(folder: Path, deadline: float) -> IO[str]:
    """Create a folder if needed and lock it, until the returned file is closed or the process ends.

    Wait for another process until ``deadline``, by ``time.monotonic``.

    Raises:
        InputError: The folder is a file.
        StoreLockedError: Another process holds it beyond the deadline.
        StoreError: It cannot be created or used.
    """
    with usable(folder):
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} is a file. Give a folder for the case store.")
        folder.mkdir(parents=True, exist_ok=True)
        return _locked(folder, LOCK_FILE, deadline)


def open_client(folder: Path, deadline: float) -> QdrantClient:
    """Open a locked folder by qdrant-client's local mode.

    Raises:
        StoreLockedError: Another user of Qdrant has it open beyond the deadline.
        StoreDamagedError: Its files cannot be read; they are left unchanged.
    """
    with usable(folder):
        # Other users of Qdrant only take its own lock: wait for them before loading.
        _locked(folder, QDRANT_LOCK_FILE, deadline).close()
        return _client(folder)


class _Points(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) != POINT:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which no case does")
        return super().find_class(module, name)


def read_point(text: bytes) -> Any:
    """Return a point from its pickle; raise ``UnpicklingError`` for any other object."""
    return _Points(BytesIO(text)).load()


@contextmanager
def points_only() -> Iterator[None]:
    """Make local mode read only points inside the context.

    It reads a collection once, when it is opened or made. Other users of qdrant-client in this
    process are only affected during the context.
    """
    from qdrant_client.local import persistence as local

    persistence: Any = local
    data = SimpleNamespace(dumps=pickle.dumps, loads=read_point)
    with _unpickling:
        original, persistence.pickle = persistence.pickle, data
        try:
            yield
        finally:
            persistence.pickle = original


@contextmanager
def usable(folder: Path) -> Iterator[None]:
    """Turn an ``OSError`` into a ``StoreError``."""
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
    # Its import searches a writable folder, so it is imported only here.
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
    # A damaged file may raise anything.
    except Exception as error:
        if "already accessed" in str(error):
            raise in_use(folder) from error
        raise damaged(folder, f"{type(error).__name__}: {str(error)[:200]}") from error


def _check_whole(folder: Path) -> None:
    """Raise an error for a folder or collection that Qdrant would overwrite as a new one."""
    collections, meta = folder / "collection", folder / "meta.json"
    if meta.exists():
        for name in json.loads(meta.read_text(encoding="utf-8"))["collections"]:
            storage = collections / name / "storage.sqlite"
            if not storage.is_file() or not storage.stat().st_size:
                raise damaged(folder, f"the cases of its collection {name!r} are missing")
    elif collections.is_dir() and any(collections.iterdir()):
        raise damaged(folder, "it has collections, and its meta.json is missing")
