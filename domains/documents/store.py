"""The store that documents are ingested into and asked for."""

from __future__ import annotations

from pathlib import Path

from casewright.domains.waiting import open_waiting
from casewright.stores import CaseStore, Encoder
from casewright.stores.documents.cases import document_schema


def open_store(location: str | Path, encoder: Encoder) -> CaseStore:
    """Open the store of documents; wait for another process that has its folder open.

    Raises:
        StoreError: It cannot be opened; see ``CaseStore``.
    """
    return open_waiting(document_schema(encoder), location)
