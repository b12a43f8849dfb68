"""Helpers for tests of domains: tool calls, and searches with a scripted judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from casewright.domains import OpenDomain, find_domain
from casewright.graph.feedback import FeedbackSearch
from casewright.stores import CaseStore
from casewright.stores.feedback import Candidate, JudgeRequest, Strategy, Verdicts
from casewright.tools import CallContext, Search

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Marks:
    """A judge that confirms the candidates that a function confirms."""

    confirms: Callable[[Candidate], bool]
    name: str = "marks"

    def judge(self, request: JudgeRequest) -> Verdicts:
        return Verdicts(frozenset(item.id for item in request.candidates if self.confirms(item)))


def with_loop(opened: OpenDomain, name: str, confirms: Callable[[Candidate], bool]) -> OpenDomain:
    """Return the open domain with tools whose loop confirms candidates by a function."""

    def search(store: CaseStore, strategy: Strategy, weights: Mapping[str, float] | None) -> Search:
        return FeedbackSearch(store, Marks(confirms), strategy, weights=weights, fallback=False)

    looping = find_domain(name).looping
    assert looping is not None
    return looping(opened, search)


def call(
    shop: OpenDomain, tool: str, question: str = "", customer: str | None = None, **arguments: Any
) -> Sequence[Row]:
    """Call a tool as a step would; ``query`` is the question unless it is given."""
    spec = shop.toolbox[tool]
    if spec.parameter("query") is not None:
        arguments.setdefault("query", question)
    scope = {} if customer is None else {"customer": customer}
    assert spec.run is not None
    rows: Sequence[Row] = spec.run(arguments, CallContext(question=question, scope=scope))
    return rows
