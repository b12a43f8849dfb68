"""The store that documents are ingested into and asked for."""

from __future__ import annotations

from pathlib import Path

from casewright.domains.build import LOCK_SECONDS, SILENT_SECONDS
from casewright.errors import StoreLockedError
from casewright.stores import CaseStore, Encoder
from casewright.stores.documents.cases import document_schema
from casewright.stores.progress import note


def open_store(location: str | Path, encoder: Encoder) -> CaseStore:
    """Open the store of documents; wait for another process that has its folder open.

    Raises:
        StoreError: It cannot be opened; see ``CaseStore``.
    """
    schema = document_schema(encoder)
    try:
        return CaseStore(schema, location, lock_seconds=SILENT_SECONDS)
    except StoreLockedError:
        note(f"Waiting for another process that uses the store {location} …")
        return CaseStore(schema, location, lock_seconds=LOCK_SECONDS)
