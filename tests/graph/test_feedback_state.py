"""Checkpoints, resumption, parent graphs and streams of a feedback loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from casewright.graph.feedback import FeedbackLimits, FeedbackResult, build_feedback
from casewright.stores import CaseStore
from casewright.stores.feedback import JudgeRequest, RocchioStrategy, Verdicts
from tests.graph.feedback_helpers import (
    QUESTION,
    Scripted,
    all_relevant,
    ids,
    loop,
    no_verdicts,
    note_store,
    run,
)
from tests.graph.helpers import fresh_process

CONFIG: Any = {"configurable": {"thread_id": "one"}}
LIMITS = FeedbackLimits(first=4, more=3, rounds=3)
MODES = pytest.mark.parametrize("mode", ["sync", "async"])


@pytest.fixture(scope="module")
def store() -> Iterator[CaseStore]:
    with note_store() as opened:
        yield opened


def saver() -> InMemorySaver:
    """A checkpointer that takes nothing but plain values."""
    return InMemorySaver(serde=JsonPlusSerializer(allowed_msgpack_modules=None))


def plain_all_through(value: Any) -> bool:
    if isinstance(value, dict):
        return all(type(k) is str and plain_all_through(v) for k, v in value.items())
    if isinstance(value, list):
        return all(map(plain_all_through, value))
    return value is None or type(value) in (str, int, float, bool)


@MODES
def test_checkpointed_states_of_a_loop_are_plain_json(store: CaseStore, mode: str) -> None:
    def script(request: JudgeRequest) -> Any:
        known = frozenset(one.id for one in request.candidates)
        tokens: Any = {"input": 2**80, "output": 1.5}
        note = "half \ud800 a pair" if request.relevant else ""
        return Verdicts(known, dict.fromkeys(known, True), tokens if request.relevant else {}, note)

    kept = saver()
    graph = build_feedback(store, Scripted(script), limits=LIMITS, checkpointer=kept)
    result = run(mode, graph, CONFIG, where={"even": True})
    assert len(result.rounds) > 1
    states = [state.values for state in graph.get_state_history(CONFIG)]
    assert len(states) >= 2 * len(result.rounds)
    assert all(plain_all_through(state) for state in states)
    assert json.loads(json.dumps(result.to_json(), allow_nan=False)) == result.to_json()


STRICT = """
from langgraph.checkpoint.memory import InMemorySaver
from casewright.graph.feedback import FeedbackLimits, build_feedback
from tests.graph.feedback_helpers import Scripted, note_store, run

config = {"configurable": {"thread_id": "one"}}
with note_store() as store:
    limits = FeedbackLimits(rounds=2)
    graph = build_feedback(store, Scripted(), limits=limits, checkpointer=InMemorySaver())
    result = run("sync", graph, config)
    states = [state.values for state in graph.get_state_history(config)]
    print(result.reason, states[0]["feedback"] == result.to_json())
"""


def test_loop_runs_with_strict_msgpack_checkpoints() -> None:
    ended = fresh_process(STRICT, LANGGRAPH_STRICT_MSGPACK="true")
    assert (ended.stdout, ended.stderr) == ("rounds True\n", "")


class Crash(BaseException):
    """The process ends here."""


@MODES
def test_crashed_loop_resumes_in_the_round_where_it_stopped(store: CaseStore, mode: str) -> None:
    def script(request: JudgeRequest) -> Any:
        if len(judge.asked) == 2:
            raise Crash
        return all_relevant(request)

    judge = Scripted(script)
    graph = build_feedback(store, judge, limits=LIMITS, checkpointer=saver())
    with pytest.raises(Crash):
        run(mode, graph, CONFIG)
    state = graph.invoke(None, CONFIG) if mode == "sync" else resumed(graph)
    result = FeedbackResult.from_state(state)
    # What the first call of round 2 asked about is asked again; round 1 is not.
    first, second, again, third = ([one.id for one in asked.candidates] for asked in judge.asked)
    assert second == again
    untouched = loop(mode, store, Scripted(), limits={"rounds": 3})
    assert ids(result) == ids(untouched) == [*first, *second, *third]
    assert result.reason == untouched.reason == "rounds"


def resumed(graph: Any, given: Any = None) -> Any:
    return asyncio.run(graph.ainvoke(given, CONFIG))


@MODES
def test_second_question_on_a_thread_starts_a_new_loop(store: CaseStore, mode: str) -> None:
    graph = build_feedback(store, Scripted(), limits=LIMITS, checkpointer=saver())
    run(mode, graph, CONFIG, question="fish and salt")
    again = run(mode, graph, CONFIG)
    fresh = loop(mode, store, Scripted(), limits={"rounds": 3})
    assert ids(again) == ids(fresh)
    assert [one["round"] for one in again.rounds] == [1, 2, 3]


def test_judge_can_ask_a_person_with_an_interrupt(store: CaseStore) -> None:
    def script(request: JudgeRequest) -> Any:
        return Verdicts(frozenset(interrupt([one.id for one in request.candidates])))

    graph = build_feedback(store, Scripted(script), limits=LIMITS, checkpointer=saver())
    asked = graph.invoke({"question": QUESTION}, CONFIG)["__interrupt__"][0].value
    assert len(asked) == 4
    chosen = asked[2]
    more = graph.invoke(Command(resume=[chosen]), CONFIG)["__interrupt__"][0].value
    assert set(more).isdisjoint(asked)
    result = FeedbackResult.from_state(graph.invoke(Command(resume=[]), CONFIG))
    assert (ids(result), result.reason) == ([chosen], "settled")


class Parent(TypedDict, total=False):
    question: str
    where: Any
    feedback: Any
    # Names that the loop uses for itself.
    rounds: int
    candidates: str
    reason: str


@MODES
@pytest.mark.parametrize("checkpointed", [False, True], ids=["plain", "checkpointed"])
def test_loop_as_a_node_leaves_other_keys_of_the_parent_unchanged(
    store: CaseStore, mode: str, checkpointed: bool
) -> None:
    graph = StateGraph(Parent)
    graph.add_node("feedback", build_feedback(store, Scripted(), limits=LIMITS))
    graph.add_edge(START, "feedback")
    graph.add_edge("feedback", END)
    parent = graph.compile(checkpointer=saver() if checkpointed else None)
    for _ in range(2):
        given: Any = {"question": QUESTION, "rounds": 7, "candidates": "own", "reason": "mine"}
        state = (
            parent.invoke(given, CONFIG)
            if mode == "sync"
            else asyncio.run(parent.ainvoke(given, CONFIG))
        )
        assert {name: state[name] for name in given} == given
        result = FeedbackResult.from_state(state)
        assert ids(result) == ids(loop(mode, store, Scripted(), limits={"rounds": 3}))


def test_stream_contains_each_round_once_and_equals_the_result(store: CaseStore) -> None:
    graph = build_feedback(store, Scripted(), RocchioStrategy(), limits=LIMITS)
    events: list[Any] = []
    state: Any = {}
    for kind, told in graph.stream({"question": QUESTION}, stream_mode=["custom", "values"]):
        if kind == "custom":
            events.append(told)
        else:
            state = told
    rounds = [{"event": "feedback_round", **one} for one in state["feedback"]["rounds"]]
    *told_rounds, ended = events
    assert told_rounds == rounds
    assert ended == {"event": "feedback_ended", "reason": "rounds", "judge": "scripted"}
    assert [one["round"] for one in rounds] == [1, 2, 3]
    assert [one["search"] for one in rounds] == ["question", "rocchio", "rocchio"]
    assert [one["found"] for one in rounds] == [one["judged"] for one in rounds] == [4, 3, 3]
    assert [one["total"] for one in rounds] == [4, 7, 10]


def test_astream_contains_each_round_and_the_error_of_a_failed_judge(store: CaseStore) -> None:
    async def events(script: Any) -> list[Any]:
        graph = build_feedback(store, Scripted(script), limits=LIMITS)
        told = [one async for one in graph.astream({"question": QUESTION}, stream_mode="custom")]
        assert told[-1]["event"] == "feedback_ended"
        return told[:-1]

    def fails(request: JudgeRequest) -> Any:
        raise ValueError("no model")

    assert [one["round"] for one in asyncio.run(events(all_relevant))] == [1, 2, 3]
    assert [one["judged"] for one in asyncio.run(events(no_verdicts))] == [4]
    (failed,) = asyncio.run(events(fails))
    assert failed["note"] == "The judge failed: ValueError: no model"
