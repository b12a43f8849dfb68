"""Opens stores: waits while another process uses their folder, or opens them at first use."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from casewright.errors import StoreLockedError
from casewright.stores import CaseSchema, CaseStore
from casewright.stores.progress import note

Opened = TypeVar("Opened")
#: Seconds to wait for another process that uses a store's folder.
LOCK_SECONDS = 60.0
#: Seconds until the user is told that the command waits.
SECONDS_BEFORE_NOTE = 2.0


def open_waiting(schema: CaseSchema, location: str | Path) -> CaseStore:
    """Open a store; if another process has locked the folder, wait for it."""
    return wait_for_folder(
        lambda seconds: CaseStore(schema, location, lock_seconds=seconds), f"the store {location}"
    )


def wait_for_folder(open_within: Callable[[float], Opened], name: str) -> Opened:
    """Open a folder with ``open_within(seconds)``, and return the result.

    If the wait is long, a note tells the user that another process uses ``name``. Raise
    ``StoreLockedError`` if another process locks the folder for longer than a minute.
    """
    try:
        return open_within(SECONDS_BEFORE_NOTE)
    except StoreLockedError:
        note(f"Waiting for another process that uses {name} …")
        return open_within(LOCK_SECONDS)


class _LazyStore:
    """A thread-safe proxy that opens its store at the first use."""

    def __init__(self, open_store: Callable[[], CaseStore]) -> None:
        self._open_store = open_store
        self._lock = threading.Lock()
        self._store: CaseStore | None = None

    def __getattr__(self, name: str) -> Any:
        with self._lock:
            if self._store is None:
                self._store = self._open_store()
            return getattr(self._store, name)

    def close(self) -> None:
        with self._lock:
            if self._store is not None:
                self._store.close()


def lazy_store(open_store: Callable[[], CaseStore]) -> CaseStore:
    """Return a proxy of a store that ``open_store`` opens at the first use."""
    return cast(CaseStore, _LazyStore(open_store))


def is_unopened(store: object) -> bool:
    """Return ``True`` if a store is a proxy of ``lazy_store`` that was not used yet."""
    return isinstance(store, _LazyStore) and vars(store)["_store"] is None
