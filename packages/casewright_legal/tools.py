"""The two tools of the legal domain: a search of similar cases, and of cases under an Act."""

from __future__ import annotations

from functools import cache
from typing import Any

from casewright.domains.search_tools import merge_hits
from casewright.stores import CaseStore, Hit
from casewright.tools import CallContext, Search, Toolbox, ToolExample, ToolSpec, tool_from_function
from casewright_legal.acts import matching_keys
from casewright_legal.naming import naming_levels

#: Lowest relevance of a case that is related to the question; unrelated texts reach 0.17.
MIN_RELEVANCE = 0.22
#: Lowest relevance of a case, as a proportion of the best case's relevance. If a question needs two
#: cases, the relevance of the second case is near this limit.
MIN_SHARE_OF_BEST = 0.7
#: Maximum numbers of cases in a result, and of candidates that are compared with the question.
MAX_CASES, MAX_CANDIDATES = 4, 100
QUERY_SOURCES = ("question", "literal")
RESULT_FIELDS = ("citation", "answer", "evidence")
Row = dict[str, Any]


def legal_toolbox(cases: CaseStore, loop: Search | None = None) -> Toolbox:
    """Return the toolbox; the hits of ``loop``, a search with feedback, follow the other hits."""
    return Toolbox([_case_search(cases, loop), _act_cases(cases, loop)])


def _case_search(cases: CaseStore, loop: Search | None) -> ToolSpec:
    def case_search(query: str, call: CallContext) -> list[Row]:
        """Decided cases and statute sections like the question: what a court held, and why."""
        hits = cases.search(query, MAX_CANDIDATES)
        best_relevance = max((hit.relevance for hit in hits), default=0.0)
        threshold = max(MIN_RELEVANCE, MIN_SHARE_OF_BEST * best_relevance)
        levels = naming_levels(query, [hit.case.metadata["citation"] for hit in hits])
        pairs = zip(levels, hits, strict=True)
        selected = [(level, hit) for level, hit in pairs if level or hit.relevance >= threshold]
        selected.sort(key=lambda item: -item[0])
        confirmed_hits = [] if loop is None else loop(query, 2 * MAX_CASES, {}, call)
        hits = merge_hits([hit for _, hit in selected[:MAX_CASES]], confirmed_hits)
        return [_row(cases, hit) for hit in hits]

    return tool_from_function(
        case_search,
        results=RESULT_FIELDS,
        sources={"query": QUERY_SOURCES},
        example=ToolExample(
            "Why was the appeal out of time in Nasr v NRMA Insurance?",
            "s1 = case_search(query=question)",
        ),
    )


def _act_cases(cases: CaseStore, loop: Search | None) -> ToolSpec:
    @cache
    def act_names() -> frozenset[str]:
        return frozenset(key for case in cases.all() for key in case.metadata.get("acts", ()))

    def act_cases(act: str, query: str, call: CallContext) -> list[Row]:
        """Cases and sections that name one Act or regulation, the nearest to the question first."""
        keys = matching_keys(act, act_names())
        if not keys:
            return []
        confirmed_hits = [] if loop is None else loop(query, 2 * MAX_CASES, {"acts": keys}, call)
        hits = merge_hits(cases.search(query, MAX_CASES, where={"acts": keys}), confirmed_hits)
        return [_row(cases, hit) for hit in hits]

    return tool_from_function(
        act_cases,
        results=RESULT_FIELDS,
        sources={"act": ("span", "literal"), "query": QUERY_SOURCES},
        example=ToolExample(
            "Which decisions apply the Migration Act 1958 to late applications?",
            's1 = act_cases(act="Migration Act 1958", query=question)',
        ),
    )


def _row(cases: CaseStore, hit: Hit) -> Row:
    citation = hit.case.metadata["citation"]
    fields = {"answer": hit.case.solution, "evidence": cases.schema.support(hit.case)}
    return {"citation": citation, **fields, "source": f"legal:{citation}"}
