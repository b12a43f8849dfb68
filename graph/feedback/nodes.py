"""The nodes of the feedback loop: search, judge, finish."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from langgraph.errors import GraphBubbleUp

from casewright.errors import StoreError
from casewright.graph.containment import await_within, contained
from casewright.graph.feedback.limits import FeedbackLimits, estimated_tokens
from casewright.graph.feedback.rounds import found as found_in
from casewright.graph.feedback.rounds import judged, left, unjudged, unsearched
from casewright.graph.feedback.state import FeedbackResult, FeedbackState
from casewright.planner.request import check_question
from casewright.stores import Case, CaseStore, Found, Question
from casewright.stores.feedback import (
    AsyncJudge,
    Candidate,
    Feedback,
    Judge,
    JudgeRequest,
    Strategy,
    Verdicts,
)
from casewright.tools.deadline import call_within, start_daemon


class Nodes:
    """The nodes of a loop; search and judge have an async twin. See ``build_feedback``."""

    def __init__(
        self,
        store: CaseStore,
        judge: Judge,
        strategy: Strategy,
        limits: FeedbackLimits,
        weights: Mapping[str, float] | None,
        text: Callable[[Case], str],
    ) -> None:
        store.schema.weights(weights)
        self.store = store
        self.by = judge
        self.strategy = strategy
        self.limits = limits
        self.weights = weights
        self.text = text

    def begin(self, state: FeedbackState) -> dict[str, Any]:
        """Forget what a thread's earlier question found."""
        return {"candidates": [], "rounds": [], "reason": ""}

    def search(self, state: FeedbackState) -> dict[str, Any]:
        """Find candidates that were not seen: by the question first, then by the strategy."""
        started = time.perf_counter()
        if not state["rounds"]:
            check_question(state.get("question", ""))
            try:
                return call_within(lambda: self._first(state, started), self.limits.seconds)
            except TimeoutError:
                raise self._too_slow() from None
        try:
            found = call_within(lambda: self._again(state), left(state, self.limits))
        except Exception as error:  # noqa: BLE001 - what was found before is worth more
            return unsearched(state, self.limits, error, started)
        return found_in(state, found, self.strategy.name, started)

    async def asearch(self, state: FeedbackState) -> dict[str, Any]:
        """The same, without blocking the event loop."""
        started = time.perf_counter()
        if not state["rounds"]:
            check_question(state.get("question", ""))
            first = asyncio.wrap_future(start_daemon(lambda: self._first(state, started)))
            try:
                return await await_within(first, self.limits.seconds)
            except TimeoutError:
                raise self._too_slow() from None
        try:
            work = asyncio.wrap_future(start_daemon(lambda: self._again(state)))
            found = await await_within(work, left(state, self.limits))
        except Exception as error:  # noqa: BLE001 - what was found before is worth more
            return unsearched(state, self.limits, error, started)
        return found_in(state, found, self.strategy.name, started)

    def judge(self, state: FeedbackState) -> dict[str, Any]:
        """Have the unseen judged, in one call."""
        started = time.perf_counter()
        try:
            request, whole = self._request(state)
        except StoreError as error:
            return unsearched(state, self.limits, error, started)
        try:
            verdicts = call_within(lambda: self._asked(request), request.seconds)
        except GraphBubbleUp:
            # An interrupt asks a person, who may be the judge.
            raise
        except Exception as error:  # noqa: BLE001 - judges raise anything
            return unjudged(state, request, error, started)
        return judged(state, self.limits, request, verdicts, started, whole=whole)

    async def ajudge(self, state: FeedbackState) -> dict[str, Any]:
        """The same, without blocking the event loop."""
        started = time.perf_counter()
        try:
            request, whole = await asyncio.wrap_future(start_daemon(lambda: self._request(state)))
        except StoreError as error:
            return unsearched(state, self.limits, error, started)
        try:
            verdicts = await await_within(self._aasked(request), request.seconds)
        except GraphBubbleUp:
            raise
        except Exception as error:  # noqa: BLE001 - judges raise anything
            return unjudged(state, request, error, started)
        return judged(state, self.limits, request, verdicts, started, whole=whole)

    def finish(self, state: FeedbackState) -> dict[str, Any]:
        """Return what is relevant, or where nothing is, what the question itself found."""
        seen = state["candidates"]
        marked = [one for one in seen if one["relevant"]]
        if marked and all(one["probability"] is not None for one in marked):
            marked.sort(key=lambda one: -one["probability"])
        chosen = marked or [one for one in seen if one["round"] == 1]
        question = self._question(state)
        hits = question.hits([one["id"] for one in chosen]) if question and chosen else []
        known = {one["id"]: one for one in chosen}
        told_hits = [
            {
                "id": hit.case.id,
                "text": self.text(hit.case),
                "metadata": dict(hit.case.metadata),
                "score": hit.score,
                "round": known[hit.case.id]["round"],
                "confirmed": bool(marked),
                "probability": known[hit.case.id]["probability"],
            }
            for hit in hits
        ]
        result = FeedbackResult(
            told_hits,
            [dict(one) for one in seen],
            state["reason"],  # type: ignore[arg-type]
            state["rounds"],
            self.by.name,
            self.strategy.name,
        )
        # The condition belongs to one question: the next one on a thread starts with its own.
        return {"feedback": result.to_json(), "where": None}

    def _question(self, state: FeedbackState) -> Question | None:
        return self.store.question(
            state["question"], weights=self.weights, where=state.get("where")
        )

    def _too_slow(self) -> StoreError:
        return StoreError(
            f"The first search of {self.store.schema.name!r} took longer than "
            f"{self.limits.seconds:g} s. Raise FeedbackLimits.seconds, or look at its encoder."
        )

    def _first(self, state: FeedbackState, started: float) -> dict[str, Any]:
        question = self._question(state)
        wanted = min(self.limits.first, self.limits.candidates)
        found = question.best(wanted) if question else []
        return found_in(state, found, "question", started)

    def _again(self, state: FeedbackState) -> Sequence[Found]:
        question = self._question(state)
        if question is None:
            return []
        known = self._candidates(question, state)
        relevant = [one for one, mark in known if mark]
        irrelevant = [one for one, mark in known if mark is False]
        if not relevant:
            return []
        wanted = min(self.limits.more, self.limits.candidates - len(state["candidates"]))
        seen = {one["id"] for one in state["candidates"]}
        unseen: dict[str, Found] = {}
        with _contained(self.strategy.name):
            for one in self.strategy.search(question, Feedback(relevant, irrelevant), wanted):
                if one.hit.case.id not in seen and math.isfinite(one.nearness):
                    unseen.setdefault(one.hit.case.id, one)
        return list(unseen.values())[:wanted]

    def _candidates(
        self, question: Question, state: FeedbackState
    ) -> list[tuple[Candidate, bool | None]]:
        """Return what was found so far, and what the judge said of it."""
        hits = {hit.case.id: hit for hit in question.hits([c["id"] for c in state["candidates"]])}
        return [
            (
                Candidate(
                    hit,
                    self.text(hit.case)[: self.limits.characters],
                    one["nearness"],
                    one["round"],
                ),
                one["relevant"],
            )
            for one in state["candidates"]
            # It may have been deleted meanwhile.
            if (hit := hits.get(one["id"])) is not None
        ]

    def _request(self, state: FeedbackState) -> tuple[JudgeRequest, bool]:
        """Return what the judge is asked, and whether that is all that there is to judge."""
        question = self._question(state)
        known = self._candidates(question, state) if question else []
        relevant = [one for one, mark in known if mark]
        unseen = [one for one, mark in known if mark is None]
        spent = sum(one["tokens"] for one in state["rounds"])
        spent += estimated_tokens(state["question"], *(one.text for one in relevant))
        fitting: list[Candidate] = []
        for one in unseen:
            spent += estimated_tokens(one.text)
            if spent > self.limits.tokens:
                break
            fitting.append(one)
        asked = JudgeRequest(state["question"], relevant, fitting, left(state, self.limits))
        return asked, len(fitting) == len(unseen)

    def _asked(self, request: JudgeRequest) -> Verdicts:
        if not request.candidates:
            return Verdicts(frozenset())
        if request.seconds <= 0:
            raise TimeoutError
        with _contained(self.by.name):
            return self.by.judge(request)

    async def _aasked(self, request: JudgeRequest) -> Verdicts:
        if not (isinstance(self.by, AsyncJudge) and request.candidates and request.seconds > 0):
            return await asyncio.wrap_future(start_daemon(lambda: self._asked(request)))
        # Inside of the coroutine: a task that ends by SystemExit would end the event loop.
        with _contained(self.by.name):
            return await self.by.ajudge(request)


@contextmanager
def _contained(caller: str) -> Iterator[None]:
    """Make a failure, too, of a cancellation that nobody asked for."""
    with contained(caller):
        try:
            yield
        except asyncio.CancelledError:
            if _cancelled():
                raise
            raise RuntimeError(f"{caller} was cancelled") from None


def _cancelled() -> bool:
    try:
        task = asyncio.current_task()
    except RuntimeError:
        # A thread without an event loop.
        return False
    return task is not None and task.cancelling() > 0
