"""Helpers of the domains' searches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from casewright.planner import AnnotatedQuery
from casewright.stores import CaseStore, Hit
from casewright.stores.hit import near_best as worth_showing
from casewright.tools import CallContext, Search, Toolbox, ToolExample, tool_from_function


def united(first: Sequence[Hit], then: Sequence[Hit]) -> list[Hit]:
    """Return the hits of one search, followed by the new hits of another."""
    ids = {hit.case.id for hit in first}
    return [*first, *(hit for hit in then if hit.case.id not in ids)]


def searches(
    store: CaseStore, k: int, min_relevance: float, near_best: float, loop: Search | None
) -> dict[str, Any]:
    """Return arguments of ``tool_from_store`` for a search with or without relevance feedback.

    A single search returns at most ``k`` hits; a loop may add twice as many confirmed hits before
    them.
    """
    if loop is None:
        return {"k": k, "min_relevance": min_relevance, "near_best": near_best}

    def search(
        query: str, limit: int, where: Mapping[str, Any], context: CallContext
    ) -> Sequence[Hit]:
        hits = worth_showing(store.search(query, k, where=where), min_relevance, near_best)
        return united(loop(query, 2 * k, where, context), hits)

    return {"k": 3 * k, "search": search}


def search_toolbox(search: Callable[..., Sequence[dict[str, Any]]], question: str) -> Toolbox:
    """Return a toolbox of one search by ``query``, with a question as its example."""
    example = ToolExample(question, f"s1 = {search.__name__}(query=question)")
    sources = {"query": ("question", "literal")}
    return Toolbox([tool_from_function(search, sources=sources, example=example)])


def search_queries(prefix: str, tool: str, questions: Sequence[str]) -> list[AnnotatedQuery]:
    """Return annotated queries, each with a plan of one search."""
    plan = f"s1 = {tool}(query=question)"
    return [
        AnnotatedQuery.read({"id": f"{prefix}{number}", "query": query, "plan": plan})
        for number, query in enumerate(questions, 1)
    ]
