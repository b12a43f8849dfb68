"""A feedback loop in place of a single search: what `tool_from_store` takes as its search."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from langchain_core.runnables.config import ensure_config

from casewright.errors import InputError
from casewright.graph.feedback.limits import FeedbackLimits
from casewright.graph.feedback.loop import build_feedback
from casewright.graph.feedback.state import FeedbackInput, FeedbackResult
from casewright.stores import Case, CaseStore, Hit
from casewright.stores.feedback import Judge, Strategy, case_text
from casewright.tools import CallContext


class FeedbackSearch:
    """Searches a store with relevance feedback, within a step of a plan or by itself::

        tool_from_store(store, name="…", description="…", search=FeedbackSearch(store, judge))

    Every round is reported to the step that it is part of, and stands in its outcome.

    Args:
        store: What is searched.
        judge: Says what is relevant; one that interrupts to ask a person cannot be used here.
        strategy: How later rounds search.
        limits: The bounds; their time is best below that of a step.
        weights: Facet name to weight; by default the schema's own.
        text: What a judge reads of a case.
        fill: Put the best of what was not confirmed after what was, up to k.
        fallback: Where nothing was confirmed at all, return what the question itself found;
            whoever has a single search of their own beside it turns that off.
    """

    def __init__(
        self,
        store: CaseStore,
        judge: Judge,
        strategy: Strategy | None = None,
        *,
        limits: FeedbackLimits | None = None,
        weights: Mapping[str, float] | None = None,
        text: Callable[[Case], str] = case_text,
        fill: bool = False,
        fallback: bool = True,
    ) -> None:
        self.loop = build_feedback(
            store, judge, strategy, limits=limits, weights=weights, text=text
        )
        self.text = text
        self._store = store
        self._weights = weights
        self._fill = fill
        self._fallback = fallback

    def __call__(
        self, query: str, k: int, where: Mapping[str, Any], context: CallContext
    ) -> list[Hit]:
        """Return at most k hits, the relevant first; see ``Search``."""

        # Whoever traces the step sees the loop within it.
        around = ensure_config()
        traced: Any = {name: around.get(name) for name in ("callbacks", "tags", "metadata")}

        def run() -> FeedbackResult:
            state: Mapping[str, Any] = {}
            given: FeedbackInput = {"question": query, "where": dict(where)}
            for mode, event in self.loop.stream(given, traced, stream_mode=["custom", "values"]):
                if mode == "custom" and isinstance(event, Mapping):
                    context.report(event)
                elif isinstance(event, Mapping):
                    state = event
            return FeedbackResult.from_state(state)

        # In a context of its own: the loop is part of the step, not of the graph that runs that.
        result = contextvars.Context().run(run)
        return self.hits(result, query, k, where)

    def hits(
        self, result: FeedbackResult, query: str, k: int, where: Mapping[str, Any] | None = None
    ) -> list[Hit]:
        """Return at most k hits of a result, the relevant first."""
        if k < 1:
            raise InputError(f"A feedback search was asked for k={k}. Give at least 1.")
        if not (result.confirmed or self._fallback or self._fill):
            return []
        question = self._store.question(query, weights=self._weights, where=where)
        return question.hits(ranked(result, fill=self._fill)[:k]) if question else []


def ranked(result: FeedbackResult, *, fill: bool) -> list[str]:
    """Return the ids of a result's hits, and where it is to be filled, of all others after them.

    Those that were judged irrelevant come last; else it goes by the round, and the place in it.
    """
    chosen = [str(hit["id"]) for hit in result.hits]
    if not fill:
        return chosen
    others = sorted(result.candidates, key=lambda one: one["relevant"] is False)
    return list(dict.fromkeys([*chosen, *_ids(others)]))


def _ids(candidates: Iterable[Mapping[str, Any]]) -> Sequence[str]:
    return [str(one["id"]) for one in candidates]
