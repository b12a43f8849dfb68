"""Opening a store whose folder another process may hold."""

from __future__ import annotations

from pathlib import Path

from casewright.domains.build import LOCK_SECONDS, SILENT_SECONDS
from casewright.errors import StoreLockedError
from casewright.stores import CaseSchema, CaseStore
from casewright.stores.progress import note


def open_waiting(schema: CaseSchema, location: str | Path) -> CaseStore:
    """Open a store; wait for another process that has its folder open, and say so.

    Raises:
        StoreError: It cannot be opened; see ``CaseStore``.
    """
    try:
        return CaseStore(schema, location, lock_seconds=SILENT_SECONDS)
    except StoreLockedError:
        note(f"Waiting for another process that uses the store {location} …")
        return CaseStore(schema, location, lock_seconds=LOCK_SECONDS)
