"""The results of two searches as one list."""

from __future__ import annotations

from collections.abc import Sequence

from casewright.stores import Hit


def united(first: Sequence[Hit], then: Sequence[Hit]) -> list[Hit]:
    """Return the hits of one search, and after them those of another that it has not."""
    have = {hit.case.id for hit in first}
    return [*first, *(hit for hit in then if hit.case.id not in have)]
