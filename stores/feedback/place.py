"""Where a candidate stands: its source, and its place in that."""

from __future__ import annotations

from casewright.stores.documents.places import place_of
from casewright.stores.feedback.candidate import Candidate


def source_of(candidate: Candidate) -> tuple[str, str]:
    """Return root and source of a chunk, as ``ingest`` names them; empty of other cases."""
    root, source = (candidate.hit.case.metadata.get(name) for name in ("root", "source"))
    return (
        root if isinstance(root, str) else "",
        source.strip() if isinstance(source, str) else "",
    )


def same_source(one: Candidate, other: Candidate) -> bool:
    """Say whether two candidates are of one document."""
    return bool(source_of(one)[1]) and source_of(one) == source_of(other)


def beside(one: Candidate, other: Candidate) -> bool:
    """Say whether one stands right before or after another, in one document."""
    here, there = place_of(one.hit.case), place_of(other.hit.case)
    if here is None or there is None:
        return False
    return here[:2] == there[:2] and abs(here[2] - there[2]) == 1
