"""A store that is opened, and built where needed, when it is first used."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, cast

from casewright.stores import CaseStore


class LateStore:
    """Stands for a store that not every run needs. Thread-safe.

    Args:
        make: Opens the store.
    """

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
    """Return a store that ``make`` opens when it is first used."""
    return cast(CaseStore, LateStore(make))


def waits(store: object) -> bool:
    """Return whether a store is one that nothing has used yet."""
    return isinstance(store, LateStore) and vars(store)["_store"] is None
