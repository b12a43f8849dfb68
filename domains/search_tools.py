"""Functions that the domains' search tools share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from casewright.planner import AnnotatedQuery
from casewright.stores import CaseStore, Hit
from casewright.stores.hit import near_best
from casewright.tools import CallContext, Search, Toolbox, ToolExample, tool_from_function


def merge_hits(first: Sequence[Hit], second: Sequence[Hit]) -> list[Hit]:
    """Return the hits of one search, followed by the new hits of another."""
    ids = {hit.case.id for hit in first}
    return [*first, *(hit for hit in second if hit.case.id not in ids)]


def search_arguments(
    store: CaseStore, k: int, min_relevance: float, share_of_best: float, loop: Search | None
) -> dict[str, Any]:
    """Return arguments for ``tool_from_store``; ``loop`` is a search by relevance feedback, if any.

    A search without feedback returns at most ``k`` hits. The loop adds at most ``2 * k`` relevant
    hits, which come first.
    """
    if loop is None:
        return {"k": k, "min_relevance": min_relevance, "near_best": share_of_best}

    def search(
        query: str, limit: int, where: Mapping[str, Any], context: CallContext
    ) -> Sequence[Hit]:
        hits = near_best(store.search(query, k, where=where), min_relevance, share_of_best)
        return merge_hits(loop(query, 2 * k, where, context), hits)

    return {"k": 3 * k, "search": search}


def search_toolbox(search: Callable[..., Sequence[dict[str, Any]]], question: str) -> Toolbox:
    """Return a toolbox whose only tool is ``search``; its example is a call for ``question``."""
    example = ToolExample(question, f"s1 = {search.__name__}(query=question)")
    sources = {"query": ("question", "literal")}  # the whole question, or a text of the plan
    return Toolbox([tool_from_function(search, sources=sources, example=example)])


def search_queries(prefix: str, tool: str, questions: Sequence[str]) -> list[AnnotatedQuery]:
    """Return annotated queries that call a search tool once; their ids begin with ``prefix``."""
    plan = f"s1 = {tool}(query=question)"
    return [
        AnnotatedQuery.read({"id": f"{prefix}{number}", "query": query, "plan": plan})
        for number, query in enumerate(questions, 1)
    ]
