"""The nodes of the feedback loop: search, judge, finish."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langgraph.config import get_stream_writer
from langgraph.errors import GraphBubbleUp

from casewright.errors import CasewrightError, told
from casewright.graph.containment import await_within, contained
from casewright.graph.feedback.limits import FeedbackLimits, estimated_tokens
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

    def search(self, state: FeedbackState) -> dict[str, Any]:
        """Find candidates that were not seen: by the question first, then by the strategy."""
        started = time.perf_counter()
        if not state.get("rounds"):
            return self._first(state, started)
        try:
            with contained(self.strategy.name):
                found = call_within(lambda: self._again(state), self._left(state))
        except Exception as error:  # noqa: BLE001 - what was found before is worth more
            return self._no_search(state, error)
        return self._found(state, found, started)

    async def asearch(self, state: FeedbackState) -> dict[str, Any]:
        """The same, without blocking the event loop."""
        started = time.perf_counter()
        if not state.get("rounds"):
            return await asyncio.wrap_future(start_daemon(lambda: self._first(state, started)))
        try:
            with contained(self.strategy.name):
                work = asyncio.wrap_future(start_daemon(lambda: self._again(state)))
                found = await await_within(work, self._left(state))
        except Exception as error:  # noqa: BLE001 - what was found before is worth more
            return self._no_search(state, error)
        return self._found(state, found, started)

    def judge(self, state: FeedbackState) -> dict[str, Any]:
        """Have the unseen judged, in one call."""
        started = time.perf_counter()
        request = self._request(state)
        try:
            verdicts = call_within(lambda: self._asked(request), request.seconds)
        except GraphBubbleUp:
            # An interrupt asks a person, who may be the judge.
            raise
        except Exception as error:  # noqa: BLE001 - judges raise anything
            return self._unjudged(state, request, error, started)
        return self._judged(state, request, verdicts, started)

    async def ajudge(self, state: FeedbackState) -> dict[str, Any]:
        """The same, without blocking the event loop."""
        started = time.perf_counter()
        request = await asyncio.wrap_future(start_daemon(lambda: self._request(state)))
        try:
            with contained(self.by.name):
                work = (
                    self.by.ajudge(request)
                    if isinstance(self.by, AsyncJudge)
                    else asyncio.wrap_future(start_daemon(lambda: self._asked(request)))
                )
                verdicts = await await_within(work, request.seconds)
        except GraphBubbleUp:
            raise
        except Exception as error:  # noqa: BLE001 - judges raise anything
            return self._unjudged(state, request, error, started)
        return self._judged(state, request, verdicts, started)

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
        return {"feedback": result.to_json()}

    def _question(self, state: FeedbackState) -> Question | None:
        return self.store.question(
            state["question"], weights=self.weights, where=state.get("where")
        )

    def _first(self, state: FeedbackState, started: float) -> dict[str, Any]:
        check_question(state.get("question", ""))
        question = self._question(state)
        wanted = min(self.limits.first, self.limits.candidates)
        found = question.best(wanted) if question else []
        return self._found({**state, "candidates": [], "rounds": []}, found, started)

    def _again(self, state: FeedbackState) -> Sequence[Found]:
        question = self._question(state)
        if question is None:
            return []
        known = self._candidates(question, state)
        relevant = [one for one, mark in known if mark]
        irrelevant = [one for one, mark in known if mark is False]
        if not relevant:
            return []
        room = self.limits.candidates - len(known)
        with contained(self.strategy.name):
            found = self.strategy.search(
                question, Feedback(relevant, irrelevant), min(self.limits.more, room)
            )
        seen = {one["id"] for one in state["candidates"]}
        unseen = {one.hit.case.id: one for one in found if one.hit.case.id not in seen}
        return list(unseen.values())[: min(self.limits.more, room)]

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

    def _found(
        self, state: FeedbackState, found: Sequence[Found], started: float
    ) -> dict[str, Any]:
        rounds = state["rounds"]
        number = len(rounds) + 1
        new = [
            {
                "id": one.hit.case.id,
                "round": number,
                "nearness": float(one.nearness),
                "relevant": None,
                "probability": None,
            }
            for one in found
        ]
        trace = {
            "round": number,
            "search": self.strategy.name if rounds else "question",
            "found": len(new),
            "judged": 0,
            "relevant": 0,
            "total": sum(bool(one["relevant"]) for one in state["candidates"]),
            "tokens": 0,
            "milliseconds": _since(started),
            "note": "",
        }
        if not new:
            _tell(trace)
        return {
            "candidates": [*state["candidates"], *new],
            "rounds": [*rounds, trace],
            "reason": "" if new else "exhausted",
        }

    def _no_search(self, state: FeedbackState, error: Exception) -> dict[str, Any]:
        if isinstance(error, TimeoutError):
            return {"reason": "deadline"}
        note = str(error) if isinstance(error, CasewrightError) else told(error)
        last = {**state["rounds"][-1], "note": f"The next search failed: {note}"}
        return {"reason": "search_failed", "rounds": [*state["rounds"][:-1], last]}

    def _request(self, state: FeedbackState) -> JudgeRequest:
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
        return JudgeRequest(state["question"], relevant, fitting, self._left(state))

    def _asked(self, request: JudgeRequest) -> Verdicts:
        if not request.candidates:
            return Verdicts(frozenset())
        with contained(self.by.name):
            return self.by.judge(request)

    def _judged(
        self, state: FeedbackState, request: JudgeRequest, given: Any, started: float
    ) -> dict[str, Any]:
        verdicts = checked(given, request)
        asked = {one.id for one in request.candidates}
        candidates = [
            {
                **one,
                "relevant": one["id"] in verdicts.relevant,
                "probability": verdicts.probabilities.get(one["id"]),
            }
            if one["id"] in asked
            else one
            for one in state["candidates"]
        ]
        texts = [one.text for one in (*request.relevant, *request.candidates)]
        counted = sum(verdicts.tokens.get(name, 0) for name in ("input", "output"))
        estimated = estimated_tokens(request.question, *texts) if asked else 0
        trace = {
            **state["rounds"][-1],
            "judged": len(asked),
            "relevant": len(verdicts.relevant),
            "total": sum(bool(one["relevant"]) for one in candidates),
            "tokens": max(counted, 0) or estimated,
            "note": verdicts.note,
        }
        trace["milliseconds"] = round(trace["milliseconds"] + _since(started), 3)
        _tell(trace)
        update: dict[str, Any] = {
            "candidates": candidates,
            "rounds": [*state["rounds"][:-1], trace],
        }
        return {**update, "reason": self._reason({**state, **update})}  # type: ignore[typeddict-item]

    def _unjudged(
        self, state: FeedbackState, request: JudgeRequest, error: Exception, started: float
    ) -> dict[str, Any]:
        # A judge may have had a shorter deadline of its own.
        late = isinstance(error, TimeoutError) and _since(started) >= request.seconds * 1000
        trace = {**state["rounds"][-1]}
        trace["note"] = "The judge took too long." if late else f"The judge failed: {told(error)}"
        trace["milliseconds"] = round(trace["milliseconds"] + _since(started), 3)
        _tell(trace)
        return {
            "rounds": [*state["rounds"][:-1], trace],
            "reason": "deadline" if late else "judge_failed",
        }

    def _reason(self, state: FeedbackState) -> str:
        """Return why the loop stops after a round was judged; empty where it goes on."""
        rounds, limits = state["rounds"], self.limits
        judged = sum(one["relevant"] is not None for one in state["candidates"])
        if judged < len(state["candidates"]):
            return "tokens"
        if not rounds[-1]["relevant"]:
            return "settled" if rounds[-1]["total"] else "nothing_relevant"
        if len(rounds) >= limits.rounds:
            return "rounds"
        if judged >= limits.candidates:
            return "candidates"
        if sum(one["tokens"] for one in rounds) >= limits.tokens:
            return "tokens"
        return "deadline" if self._left(state) <= 0 else ""

    def _left(self, state: FeedbackState) -> float:
        """Return the seconds that are left; what a pause took does not count."""
        spent: float = sum(one["milliseconds"] for one in state["rounds"])
        return max(self.limits.seconds - spent / 1000, 0.0)


def _since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)


def _tell(trace: Mapping[str, Any]) -> None:
    get_stream_writer()({"event": "feedback_round", **trace})
