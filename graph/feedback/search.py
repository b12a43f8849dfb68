"""Search of a store by a feedback loop, for ``tool_from_store`` and for programs."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.runnables.config import ensure_config

from casewright.errors import InputError
from casewright.graph.feedback.loop import build_feedback
from casewright.graph.feedback.state import FeedbackInput, FeedbackLimits, FeedbackResult
from casewright.stores import Case, CaseStore, Hit
from casewright.stores.feedback import Judge, Strategy, case_text
from casewright.tools import CallContext


class FeedbackSearch:
    """Searches a store with relevance feedback, as a step's tool or on its own::

        tool_from_store(store, name="…", description="…", search=FeedbackSearch(store, judge))

    The step's outcome has a report of every round. Arguments that are not described here are those
    of ``build_feedback``.

    Args:
        judge: Judges which cases are relevant; this judge must not interrupt to ask a person.
        limits: Limits of the loop; ``seconds`` should be below the time limit of a step.
        fallback: True to return the results of the first search if no case is confirmed. Give
            False for a toolbox that also has a tool for a single search.
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
        fallback: bool = True,
    ) -> None:
        self.loop = build_feedback(
            store, judge, strategy, limits=limits, weights=weights, text=text
        )
        self.text = text
        self._store = store
        self._weights = weights
        self._has_fallback = fallback

    def __call__(
        self, query: str, k: int, where: Mapping[str, Any], context: CallContext
    ) -> list[Hit]:
        """Return at most k hits, as ``hits`` does; see ``Search``."""
        # With the step's callbacks, tracers show the loop within the step.
        config = ensure_config()
        trace_config: Any = {name: config.get(name) for name in ("callbacks", "tags", "metadata")}

        def run() -> FeedbackResult:
            state: Mapping[str, Any] = {}
            inputs: FeedbackInput = {"question": query, "where": dict(where)}
            modes: Any = ["custom", "values"]
            for mode, chunk in self.loop.stream(inputs, trace_config, stream_mode=modes):
                if mode == "custom" and isinstance(chunk, Mapping):
                    context.report(chunk)
                elif isinstance(chunk, Mapping):
                    state = chunk
            return FeedbackResult.from_state(state)

        # Without context variables, LangGraph does not see the loop as a part of the outer graph.
        return self.hits(contextvars.Context().run(run), query, k, where)

    def hits(
        self, result: FeedbackResult, query: str, k: int, where: Mapping[str, Any] | None = None
    ) -> list[Hit]:
        """Return up to k hits of a result; none if no case is relevant and ``fallback`` is off."""
        if k < 1:
            raise InputError(f"A feedback search got k={k}. Give at least 1.")
        if not (result.confirmed or self._has_fallback):
            return []
        # ``question`` scores cases by id; it is ``None`` if the store is empty.
        question = self._store.question(query, weights=self._weights, where=where)
        return question.hits([str(hit["id"]) for hit in result.hits[:k]]) if question else []
