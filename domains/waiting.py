"""Opening a store whose folder another process may hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from casewright.errors import StoreLockedError
from casewright.stores import CaseSchema, CaseStore
from casewright.stores.progress import note

Opened = TypeVar("Opened")
#: Seconds to wait for another process that builds or reads the same folder.
LOCK_SECONDS = 60.0
#: Seconds after which the user learns what is waited for.
SILENT_SECONDS = 2.0


def open_waiting(schema: CaseSchema, location: str | Path) -> CaseStore:
    """Open a store; wait for another process that has its folder open, and say so.

    Raises:
        StoreError: It cannot be opened; see ``CaseStore``.
    """
    return in_turn(
        lambda seconds: CaseStore(schema, location, lock_seconds=seconds), f"the store {location}"
    )


def in_turn(open_within: Callable[[float], Opened], what: str) -> Opened:
    """Return what a function opens that is given the seconds to wait; a long wait is announced.

    Raises:
        StoreLockedError: Another process holds it for longer than a minute.
    """
    try:
        return open_within(SILENT_SECONDS)
    except StoreLockedError:
        note(f"Waiting for another process that uses {what} …")
        return open_within(LOCK_SECONDS)
