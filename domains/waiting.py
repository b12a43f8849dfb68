"""Opening of stores after another process frees their folder, or at the first use."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from casewright.errors import StoreLockedError
from casewright.stores import CaseSchema, CaseStore
from casewright.stores.progress import note

Opened = TypeVar("Opened")
#: Seconds to wait for another process that uses the same folder.
LOCK_SECONDS = 60.0
#: Seconds until the user is told about the wait.
SILENT_SECONDS = 2.0


def open_waiting(schema: CaseSchema, location: str | Path) -> CaseStore:
    """Open a store; wait for another process that holds its folder."""
    return in_turn(
        lambda seconds: CaseStore(schema, location, lock_seconds=seconds), f"the store {location}"
    )


def in_turn(open_within: Callable[[float], Opened], name: str) -> Opened:
    """Return the result of a function of the seconds to wait; announce a long wait on stderr.

    ``name`` names the opened object in the note. Raise ``StoreLockedError`` if another process
    holds the folder for longer than a minute.
    """
    try:
        return open_within(SILENT_SECONDS)
    except StoreLockedError:
        note(f"Waiting for another process that uses {name} …")
        return open_within(LOCK_SECONDS)


class _LateStore:
    """A proxy of a store that is opened at the first use. Thread-safe."""

    def __init__(self, make: Callable[[], CaseStore]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._store: CaseStore | None = None

    def __getattr__(self, name: str) -> Any:
        with self._lock:
            if self._store is None:
                self._store = self._make()
            return getattr(self._store, name)

    def close(self) -> None:
        """Close the store if it is open."""
        with self._lock:
            if self._store is not None:
                self._store.close()


def late_store(make: Callable[[], CaseStore]) -> CaseStore:
    """Return a store that ``make`` opens at the first use."""
    return cast(CaseStore, _LateStore(make))


def is_unopened(store: object) -> bool:
    """Return ``True`` if a store is the proxy of ``late_store`` and was not used yet."""
    return isinstance(store, _LateStore) and vars(store)["_store"] is None
