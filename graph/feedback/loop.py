"""The feedback loop as a compiled graph: search → judge → search again, until convergence.

Source: the RepoGPT post on semi-supervised retrieval (2023): a judge marks the relevant cases, and
the question is searched again together with the relevant cases, until their number stops growing.
Unlike the post, this loop judges each case only once, and ends within its limits.
"""

from __future__ import annotations

import asyncio
import json
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from langgraph.config import get_stream_writer
from langgraph.errors import GraphBubbleUp
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from casewright.errors import InputError, StoreError, one_line
from casewright.graph.call import exits_as_errors
from casewright.graph.feedback import rounds
from casewright.graph.feedback.state import (
    FeedbackInput,
    FeedbackLimits,
    FeedbackOutput,
    FeedbackResult,
    FeedbackState,
    estimated_tokens,
)
from casewright.graph.traces import BodyNode
from casewright.planner.request import check_question
from casewright.stores import Case, CaseStore, Found, Question
from casewright.stores.feedback import (
    AsyncJudge,
    Candidate,
    Feedback,
    Judge,
    JudgeRequest,
    SentenceStrategy,
    Strategy,
    Verdicts,
    case_text,
    checked,
)
from casewright.tools.body import Body, Work
from casewright.tools.deadline import start_daemon

FeedbackGraph = CompiledStateGraph[FeedbackState, None, FeedbackInput, FeedbackOutput]
#: Maximum number of embedded questions in the cache.
MAX_CACHED_QUESTIONS = 32
#: Minimum time limit, in seconds, of the first search and of reading cases from the store.
MIN_SECONDS = 1.0


def build_feedback(
    store: CaseStore,
    judge: Judge,
    strategy: Strategy | None = None,
    *,
    limits: FeedbackLimits | None = None,
    weights: Mapping[str, float] | None = None,
    text: Callable[[Case], str] = case_text,
    checkpointer: Any = None,
) -> FeedbackGraph:
    """Compile a feedback loop over a store.

    The graph takes ``FeedbackInput`` and returns ``FeedbackOutput``, which
    ``FeedbackResult.from_state`` reads. The graph can be a node of another graph. With
    ``stream_mode="custom"`` it yields an event ``feedback_round`` after every round, and
    ``feedback_ended`` with the reason why the loop ended.

    A round is one search and one call of the judge, which judges the new cases, given the relevant
    cases so far. Within the limits, the loop continues while a round adds relevant cases. If the
    judge raises, hangs or returns invalid verdicts, the loop ends with the results so far.

    Args:
        strategy: The search of later rounds; ``SentenceStrategy`` by default.
        weights: The weight of each facet by name; the schema's weights by default.
        text: A function from a case to the text that the judge reads.
        checkpointer: Needed only if the judge interrupts, to ask a person.

    Raises:
        InputError: An argument has the wrong type; or, when the graph is invoked, ``question`` or
            ``where`` is invalid, or ``text`` fails.
        StoreError: When the graph is invoked, the first search failed.
    """
    if not isinstance(store, CaseStore) or not isinstance(limits, FeedbackLimits | None):
        raise InputError(
            f"A feedback loop was given the store {store!r:.100} and the limits {limits!r:.100}. "
            "Give a CaseStore, and FeedbackLimits(…) or None."
        )
    nodes = _Nodes(
        store, judge, strategy or SentenceStrategy(), limits or FeedbackLimits(), weights, text
    )
    graph = StateGraph(FeedbackState, input_schema=FeedbackInput, output_schema=FeedbackOutput)
    # With a checkpointer, the state still holds the results of the thread's previous question.
    graph.add_node("begin", lambda state: {"candidates": [], "rounds": [], "reason": ""})
    graph.add_node("search", BodyNode(nodes.search))
    graph.add_node("judge", BodyNode(nodes.judge))
    graph.add_node("finish", BodyNode(nodes.finish))
    graph.add_edge(START, "begin")
    graph.add_edge("begin", "search")
    graph.add_conditional_edges("search", _route_to("judge"), ["judge", "finish"])
    graph.add_conditional_edges("judge", _route_to("search"), ["search", "finish"])
    graph.add_edge("finish", END)
    return graph.compile(checkpointer=checkpointer, name="feedback")


def _route_to(node: str) -> Callable[[FeedbackState], str]:
    """Return a route to a node, or to ``finish`` if there is a reason to end the loop."""

    def route(state: FeedbackState) -> str:
        return "finish" if state["reason"] else node

    return route


@dataclass(eq=False)
class _Nodes:
    """The nodes of a feedback loop, each the body of a ``BodyNode``."""

    _store: CaseStore
    _judge: Judge
    _strategy: Strategy
    _limits: FeedbackLimits
    _weights: Mapping[str, float] | None
    _case_text: Callable[[Case], str]

    def __post_init__(self) -> None:
        self._store.schema.weights(self._weights)  # raises if a weight is invalid
        self._judge_name = _checked_name("judge", self._judge, "judge")
        self._strategy_name = _checked_name("strategy", self._strategy, "search")
        self._questions: OrderedDict[str, Question] = OrderedDict()
        self._lock = threading.Lock()

    def search(self, state: FeedbackState) -> Body[dict[str, Any]]:
        started = time.perf_counter()
        if not state["rounds"]:
            check_question(state.get("question", ""))
            # If the first search fails, there are no results to return, so the graph raises.
            seconds = max(self._limits.seconds, MIN_SECONDS)
            try:
                results = yield Work(lambda: self._first_search(state), seconds=seconds)
            except TimeoutError:
                raise StoreError(
                    f"The first search of {self._store.schema.name!r} took longer than "
                    f"{seconds:g} s. Raise FeedbackLimits.seconds, or use a faster encoder."
                ) from None
            return rounds.after_search(state, results, "question", started)
        try:
            results = yield Work(
                lambda: self._next_search(state), seconds=rounds.seconds_left(state, self._limits)
            )
        except Exception as error:  # noqa: BLE001 - the loop returns the earlier results
            return rounds.after_failed_search(state, self._limits, error, started)
        return rounds.after_search(state, results, self._strategy_name, started)

    def judge(self, state: FeedbackState) -> Body[dict[str, Any]]:
        started = time.perf_counter()
        try:
            request, is_complete = yield Work(
                lambda: self._judge_request(state), seconds=self._reading_seconds(state)
            )
        except (StoreError, TimeoutError) as error:
            return rounds.after_failed_search(state, self._limits, error, started)
        try:
            verdicts = yield Work(
                lambda: self._verdicts(request), lambda: self._averdicts(request), request.seconds
            )
        except GraphBubbleUp:
            # An interrupt is not a failure: the judge may ask a person.
            raise
        except Exception as error:  # noqa: BLE001 - judges raise anything
            return rounds.after_failed_judge(state, request, error, started)
        return rounds.after_judge(
            state, self._limits, request, verdicts, started, is_complete=is_complete
        )

    def finish(self, state: FeedbackState) -> Body[dict[str, Any]]:
        reason: Any = state["reason"]
        hits: list[dict[str, Any]] = []
        try:
            hits = yield Work(lambda: self._hits(state), seconds=self._reading_seconds(state))
        except TimeoutError:
            reason = "deadline"
        except StoreError:
            reason = "search_failed"
        candidates = [dict(candidate) for candidate in state["candidates"]]
        judge, strategy = self._judge_name, self._strategy_name
        event = {"event": "feedback_ended", "reason": reason, "judge": judge}
        get_stream_writer()(event)
        result = FeedbackResult(hits, candidates, reason, state["rounds"], judge, strategy)
        # The next question on this thread starts with its own ``where``.
        return {"feedback": result.to_json(), "where": None}

    def _reading_seconds(self, state: FeedbackState) -> float:
        return max(rounds.seconds_left(state, self._limits), MIN_SECONDS)

    def _hits(self, state: FeedbackState) -> list[dict[str, Any]]:
        candidates = state["candidates"]
        relevant = [candidate for candidate in candidates if candidate["relevant"]]
        if relevant and all(candidate["probability"] is not None for candidate in relevant):
            relevant.sort(key=lambda candidate: -candidate["probability"])
        returned = relevant or [candidate for candidate in candidates if candidate["round"] == 1]
        by_id = {candidate["id"]: candidate for candidate in returned}
        question = self._question(state) if by_id else None
        return [
            {
                "id": hit.case.id,
                "text": self._checked_text(hit.case),
                "metadata": dict(hit.case.metadata),
                "score": hit.score,
                "round": by_id[hit.case.id]["round"],
                "confirmed": bool(relevant),
                "probability": by_id[hit.case.id]["probability"],
            }
            for hit in (question.hits(list(by_id)) if question else [])
        ]

    def _checked_text(self, case: Case) -> str:
        try:
            text = self._case_text(case)
        except Exception as error:
            raise InputError(
                f"The text of case {case.id} cannot be made: {one_line(error)}. Correct text=."
            ) from error
        if not isinstance(text, str):
            raise InputError(
                f"The text of case {case.id} is a {type(text).__name__}. text= must return a str."
            )
        return text

    def _question(self, state: FeedbackState) -> Question | None:
        """Return the embedded question, perhaps from the cache; ``None`` if the store is empty."""
        text, where = state["question"], state.get("where")
        key = json.dumps([text, where], sort_keys=True, default=repr)
        with self._lock:
            if key in self._questions:
                self._questions.move_to_end(key)
                return self._questions[key]
        question = self._store.question(text, weights=self._weights, where=where)
        # None is not cached: the store may have cases at the next question.
        if question is not None:
            with self._lock:
                self._questions[key] = question
                while len(self._questions) > MAX_CACHED_QUESTIONS:
                    self._questions.popitem(last=False)
        return question

    def _first_search(self, state: FeedbackState) -> Sequence[Found]:
        question = self._question(state)
        return question.best(min(self._limits.first, self._limits.candidates)) if question else []

    def _next_search(self, state: FeedbackState) -> Sequence[Found]:
        question = self._question(state)
        if question is None:
            return []
        pairs = self._candidates_with_verdicts(question, state)
        relevant = [candidate for candidate, verdict in pairs if verdict]
        irrelevant = [candidate for candidate, verdict in pairs if verdict is False]
        if not relevant:
            return []
        limit = min(self._limits.more, self._limits.candidates - len(state["candidates"]))
        seen_ids = {candidate["id"] for candidate in state["candidates"]}
        unseen: dict[str, Found] = {}
        with _stops_as_errors(self._strategy_name):
            for result in self._strategy.search(question, Feedback(relevant, irrelevant), limit):
                if result.hit.case.id not in seen_ids and math.isfinite(result.nearness):
                    unseen.setdefault(result.hit.case.id, result)
        return list(unseen.values())[:limit]

    def _candidates_with_verdicts(
        self, question: Question, state: FeedbackState
    ) -> list[tuple[Candidate, bool | None]]:
        """Return the candidates and their verdicts, without cases that were deleted meanwhile."""
        ids = [candidate["id"] for candidate in state["candidates"]]
        hits = {hit.case.id: hit for hit in question.hits(ids)}
        pairs = []
        for record in state["candidates"]:
            if (hit := hits.get(record["id"])) is not None:
                text = self._checked_text(hit.case)[: self._limits.characters]
                candidate = Candidate(hit, text, record["nearness"], record["round"])
                pairs.append((candidate, record["relevant"]))
        return pairs

    def _judge_request(self, state: FeedbackState) -> tuple[JudgeRequest, bool]:
        """Return the request, and True if all unjudged candidates fit into the limit of tokens."""
        question = self._question(state)
        pairs = self._candidates_with_verdicts(question, state) if question else []
        relevant = [candidate for candidate, verdict in pairs if verdict]
        unjudged = [candidate for candidate, verdict in pairs if verdict is None]
        tokens = sum(record["tokens"] for record in state["rounds"])
        tokens += estimated_tokens(state["question"], *(candidate.text for candidate in relevant))
        totals = accumulate(estimated_tokens(candidate.text) for candidate in unjudged)
        count = sum(tokens + total <= self._limits.tokens for total in totals)
        seconds = rounds.seconds_left(state, self._limits)
        request = JudgeRequest(state["question"], relevant, unjudged[:count], seconds)
        return request, count == len(unjudged)

    def _verdicts(self, request: JudgeRequest) -> Verdicts:
        if not request.candidates:
            return Verdicts(frozenset())
        if request.seconds <= 0:
            raise TimeoutError
        with _stops_as_errors(self._judge_name):
            return checked(self._judge.judge(request), request)

    async def _averdicts(self, request: JudgeRequest) -> Verdicts:
        if not (isinstance(self._judge, AsyncJudge) and request.candidates and request.seconds > 0):
            return await asyncio.wrap_future(start_daemon(lambda: self._verdicts(request)))
        # The judge gets no task of its own: a SystemExit in a task would end the event loop.
        with _stops_as_errors(self._judge_name):
            verdicts = await self._judge.ajudge(request)
        # The verdicts may be a slow, lazy iterable, so ``checked`` reads them in a thread.
        return await asyncio.wrap_future(start_daemon(lambda: checked(verdicts, request)))


def _checked_name(kind: str, component: object, method: str) -> str:
    name = getattr(component, "name", None)
    if not isinstance(name, str) or not callable(getattr(component, method, None)):
        raise InputError(
            f"The {kind} {component!r:.200} cannot be used. Give an object with a str name and a "
            f"method {method}; see casewright.stores.feedback.{kind.capitalize()}."
        )
    return name


@contextmanager
def _stops_as_errors(caller: str) -> Iterator[None]:
    """Raise ``RuntimeError`` instead of an exit, or of a cancellation that nobody requested."""
    with exits_as_errors(caller):
        try:
            yield
        except asyncio.CancelledError:
            if _cancellation_requested():
                raise
            raise RuntimeError(f"{caller} was cancelled") from None


def _cancellation_requested() -> bool:
    try:
        task = asyncio.current_task()
    except RuntimeError:
        # This thread has no event loop.
        return False
    return task is not None and task.cancelling() > 0
