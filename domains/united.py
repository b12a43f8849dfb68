"""A single search and what relevance feedback confirmed, as one list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from casewright.stores import CaseStore, Hit
from casewright.stores.hit import near_best as worth_showing
from casewright.tools import CallContext, Search


def united(first: Sequence[Hit], then: Sequence[Hit]) -> list[Hit]:
    """Return the hits of one search, and after them those of another that it has not."""
    have = {hit.case.id for hit in first}
    return [*first, *(hit for hit in then if hit.case.id not in have)]


def searches(
    store: CaseStore, k: int, min_relevance: float, near_best: float, loop: Search | None
) -> dict[str, Any]:
    """Return how ``tool_from_store`` is to search a store, alone or with what a loop confirms.

    Args:
        store: What is searched.
        k: Most hits of a single search; with a loop, twice as many may be confirmed.
        min_relevance: See ``tool_from_store``.
        near_best: See there, too.
        loop: Searches with relevance feedback and returns what was confirmed, which comes first.
    """
    if loop is None:
        return {"k": k, "min_relevance": min_relevance, "near_best": near_best}

    def search(
        query: str, most: int, where: Mapping[str, Any], context: CallContext
    ) -> Sequence[Hit]:
        hits = worth_showing(store.search(query, k, where=where), min_relevance, near_best)
        return united(loop(query, 2 * k, where, context), hits)

    return {"k": 3 * k, "search": search}
