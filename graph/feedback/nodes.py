"""The nodes of the feedback loop: search, judge, finish."""

from __future__ import annotations

import asyncio
import json
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from langgraph.errors import GraphBubbleUp

from casewright.errors import InputError, StoreError, told
from casewright.graph.containment import contained
from casewright.graph.feedback.limits import FeedbackLimits, estimated_tokens
from casewright.graph.feedback.rounds import ended, judged, left, unjudged, unsearched
from casewright.graph.feedback.rounds import found as found_in
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
    checked,
)
from casewright.tools.body import Body, Work
from casewright.tools.deadline import start_daemon

#: Questions that a loop keeps embedded; and how long its first search, and its last reading, may
#: take in any case.
QUESTIONS, READING_SECONDS = 32, 1.0


class Nodes:
    """The nodes of a loop, most of them bodies of a ``BodyNode``. See ``build_feedback``."""

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
        self.by_name = _name("judge", judge, "judge")
        self.strategy = strategy
        self.strategy_name = _name("strategy", strategy, "search")
        self.limits = limits
        self.weights = weights
        self.text = text
        self._questions: OrderedDict[str, Question] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, state: FeedbackState) -> dict[str, Any]:
        """Forget what a thread's earlier question found."""
        return {"candidates": [], "rounds": [], "reason": ""}

    def search(self, state: FeedbackState) -> Body[dict[str, Any]]:
        """Find candidates that were not seen: by the question first, then by the strategy."""
        started = time.perf_counter()
        if not state["rounds"]:
            check_question(state.get("question", ""))
            # Without a first search there would be nothing to return.
            seconds = max(self.limits.seconds, READING_SECONDS)
            try:
                update: dict[str, Any] = yield Work(
                    lambda: self._first(state, started), seconds=seconds
                )
                return update
            except TimeoutError:
                raise StoreError(
                    f"The first search of {self.store.schema.name!r} took longer than "
                    f"{seconds:g} s. Raise FeedbackLimits.seconds, or look at its encoder."
                ) from None
        try:
            found = yield Work(lambda: self._again(state), seconds=left(state, self.limits))
        except Exception as error:  # noqa: BLE001 - what was found before is worth more
            return unsearched(state, self.limits, error, started)
        return found_in(state, found, self.strategy_name, started)

    def judge(self, state: FeedbackState) -> Body[dict[str, Any]]:
        """Have the unseen judged, in one call."""
        started = time.perf_counter()
        try:
            request, whole = yield Work(lambda: self._request(state), seconds=self._reading(state))
        except (StoreError, TimeoutError) as error:
            return unsearched(state, self.limits, error, started)
        try:
            verdicts = yield Work(
                lambda: self._asked(request), lambda: self._aasked(request), request.seconds
            )
        except GraphBubbleUp:
            # An interrupt asks a person, who may be the judge.
            raise
        except Exception as error:  # noqa: BLE001 - judges raise anything
            return unjudged(state, request, error, started)
        return judged(state, self.limits, request, verdicts, started, whole=whole)

    def finish(self, state: FeedbackState) -> Body[dict[str, Any]]:
        """Return what is relevant, or where nothing is, what the question itself found."""
        try:
            hits = yield Work(lambda: self._hits(state), seconds=self._reading(state))
        except (StoreError, TimeoutError) as error:
            return self._result(state, [], error)
        return self._result(state, hits)

    def _reading(self, state: FeedbackState) -> float:
        return max(left(state, self.limits), READING_SECONDS)

    def _hits(self, state: FeedbackState) -> list[dict[str, Any]]:
        seen = state["candidates"]
        marked = [one for one in seen if one["relevant"]]
        if marked and all(one["probability"] is not None for one in marked):
            marked.sort(key=lambda one: -one["probability"])
        chosen = marked or [one for one in seen if one["round"] == 1]
        question = self._question(state) if chosen else None
        known = {one["id"]: one for one in chosen}
        return [
            {
                "id": hit.case.id,
                "text": self._text(hit.case),
                "metadata": dict(hit.case.metadata),
                "score": hit.score,
                "round": known[hit.case.id]["round"],
                "confirmed": bool(marked),
                "probability": known[hit.case.id]["probability"],
            }
            for hit in (question.hits(list(known)) if question else [])
        ]

    def _result(
        self, state: FeedbackState, hits: Sequence[dict[str, Any]], error: Exception | None = None
    ) -> dict[str, Any]:
        reason: Any = state["reason"]
        if error is not None:
            reason = "deadline" if isinstance(error, TimeoutError) else "search_failed"
        result = FeedbackResult(
            hits,
            [dict(one) for one in state["candidates"]],
            reason,
            state["rounds"],
            self.by_name,
            self.strategy_name,
        )
        ended(reason, self.by_name)
        # The condition belongs to one question: the next one on a thread starts with its own.
        return {"feedback": result.to_json(), "where": None}

    def _text(self, case: Case) -> str:
        try:
            made = self.text(case)
        except Exception as error:
            raise InputError(
                f"The text of case {case.id} cannot be made: {told(error)}. Look at text=."
            ) from error
        if not isinstance(made, str):
            raise InputError(
                f"The text of case {case.id} is a {type(made).__name__}. text= must return a str."
            )
        return made

    def _question(self, state: FeedbackState) -> Question | None:
        """Return the question, embedded once for all nodes that need it."""
        text, where = state["question"], state.get("where")
        key = json.dumps([text, where], sort_keys=True, default=repr)
        with self._lock:
            if key in self._questions:
                self._questions.move_to_end(key)
                return self._questions[key]
        question = self.store.question(text, weights=self.weights, where=where)
        # A store that has nothing yet may have something at the next question.
        if question is not None:
            with self._lock:
                self._questions[key] = question
                while len(self._questions) > QUESTIONS:
                    self._questions.popitem(last=False)
        return question

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
        with _contained(self.strategy_name):
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
                    self._text(hit.case)[: self.limits.characters],
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
        with _contained(self.by_name):
            return checked(self.by.judge(request), request)

    async def _aasked(self, request: JudgeRequest) -> Verdicts:
        if not (isinstance(self.by, AsyncJudge) and request.candidates and request.seconds > 0):
            return await asyncio.wrap_future(start_daemon(lambda: self._asked(request)))
        # Inside of the coroutine: a task that ends by SystemExit would end the event loop.
        with _contained(self.by_name):
            given = await self.by.ajudge(request)
        # In a thread: verdicts that are made while they are read may take long.
        return await asyncio.wrap_future(start_daemon(lambda: checked(given, request)))


def _name(kind: str, given: object, does: str) -> str:
    """Return how a judge or strategy is named in results."""
    name = getattr(given, "name", None)
    if not isinstance(name, str) or not callable(getattr(given, does, None)):
        raise InputError(
            f"The {kind} {given!r:.200} cannot be used. Give an object with a name, a text, and a "
            f"method {does}; see casewright.stores.feedback.{kind.capitalize()}."
        )
    return name


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
