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
    FakeJudge,
    all_relevant,
    hit_ids,
    no_verdicts,
    note_store,
    run_graph,
    run_loop,
)
from tests.graph.helpers import fresh_process

CONFIG: Any = {"configurable": {"thread_id": "one"}}
LIMITS = FeedbackLimits(first=4, more=3, rounds=3)
MODES = pytest.mark.parametrize("mode", ["sync", "async"])


@pytest.fixture(scope="module")
def store() -> Iterator[CaseStore]:
    with note_store() as opened:
        yield opened


def strict_saver() -> InMemorySaver:
    """Return a checkpointer that accepts only plain values."""
    return InMemorySaver(serde=JsonPlusSerializer(allowed_msgpack_modules=None))


def is_plain_json(value: Any) -> bool:
    if isinstance(value, dict):
        return all(type(k) is str and is_plain_json(v) for k, v in value.items())
    if isinstance(value, list):
        return all(map(is_plain_json, value))
    return value is None or type(value) in (str, int, float, bool)


@MODES
def test_checkpointed_states_of_a_loop_are_plain_json(store: CaseStore, mode: str) -> None:
    def script(request: JudgeRequest) -> Any:
        case_ids = frozenset(case.id for case in request.candidates)
        tokens: Any = {"input": 2**80, "output": 1.5}
        note = "half \ud800 a pair" if request.relevant else ""
        return Verdicts(
            case_ids, dict.fromkeys(case_ids, True), tokens if request.relevant else {}, note
        )

    saver = strict_saver()
    graph = build_feedback(store, FakeJudge(script), limits=LIMITS, checkpointer=saver)
    result = run_graph(mode, graph, CONFIG, where={"even": True})
    assert len(result.rounds) > 1
    states = [state.values for state in graph.get_state_history(CONFIG)]
    assert len(states) >= 2 * len(result.rounds)
    assert all(is_plain_json(state) for state in states)
    assert json.loads(json.dumps(result.to_json(), allow_nan=False)) == result.to_json()


STRICT_SCRIPT = """
from langgraph.checkpoint.memory import InMemorySaver
from casewright.graph.feedback import FeedbackLimits, build_feedback
from tests.graph.feedback_helpers import FakeJudge, note_store, run_graph

config = {"configurable": {"thread_id": "one"}}
with note_store() as store:
    limits = FeedbackLimits(rounds=2)
    graph = build_feedback(store, FakeJudge(), limits=limits, checkpointer=InMemorySaver())
    result = run_graph("sync", graph, config)
    states = [state.values for state in graph.get_state_history(config)]
    print(result.reason, states[0]["feedback"] == result.to_json())
"""


def test_loop_runs_with_strict_msgpack_checkpoints() -> None:
    process = fresh_process(STRICT_SCRIPT, LANGGRAPH_STRICT_MSGPACK="true")
    assert (process.stdout, process.stderr) == ("rounds True\n", "")


class Crash(BaseException):
    """An error that stands for the end of the process."""


@MODES
def test_crashed_loop_resumes_in_the_round_where_it_stopped(store: CaseStore, mode: str) -> None:
    def script(request: JudgeRequest) -> Any:
        if len(judge.requests) == 2:
            raise Crash
        return all_relevant(request)

    judge = FakeJudge(script)
    graph = build_feedback(store, judge, limits=LIMITS, checkpointer=strict_saver())
    with pytest.raises(Crash):
        run_graph(mode, graph, CONFIG)
    state = graph.invoke(None, CONFIG) if mode == "sync" else run_async(graph)
    result = FeedbackResult.from_state(state)
    # Round 2, in which the run crashed, is judged again; round 1 is not.
    first, second, repeat, third = ([hit.id for hit in call.candidates] for call in judge.requests)
    assert second == repeat
    uncrashed = run_loop(mode, store, FakeJudge(), limits={"rounds": 3})
    assert hit_ids(result) == hit_ids(uncrashed) == [*first, *second, *third]
    assert result.reason == uncrashed.reason == "rounds"


def run_async(graph: Any, inputs: Any = None) -> Any:
    return asyncio.run(graph.ainvoke(inputs, CONFIG))


@MODES
def test_second_question_on_a_thread_starts_a_new_loop(store: CaseStore, mode: str) -> None:
    graph = build_feedback(store, FakeJudge(), limits=LIMITS, checkpointer=strict_saver())
    run_graph(mode, graph, CONFIG, question="fish and salt")
    second = run_graph(mode, graph, CONFIG)
    fresh = run_loop(mode, store, FakeJudge(), limits={"rounds": 3})
    assert hit_ids(second) == hit_ids(fresh)
    assert [round_["round"] for round_ in second.rounds] == [1, 2, 3]


def test_judge_can_ask_a_person_with_an_interrupt(store: CaseStore) -> None:
    def script(request: JudgeRequest) -> Any:
        return Verdicts(frozenset(interrupt([case.id for case in request.candidates])))

    graph = build_feedback(store, FakeJudge(script), limits=LIMITS, checkpointer=strict_saver())
    first_ids = graph.invoke({"question": QUESTION}, CONFIG)["__interrupt__"][0].value
    assert len(first_ids) == 4
    chosen = first_ids[2]
    second_ids = graph.invoke(Command(resume=[chosen]), CONFIG)["__interrupt__"][0].value
    assert set(second_ids).isdisjoint(first_ids)
    result = FeedbackResult.from_state(graph.invoke(Command(resume=[]), CONFIG))
    assert (hit_ids(result), result.reason) == ([chosen], "settled")


class Parent(TypedDict, total=False):
    question: str
    where: Any
    feedback: Any
    # The loop uses these names in its own state.
    rounds: int
    candidates: str
    reason: str


@MODES
@pytest.mark.parametrize("checkpointed", [False, True], ids=["plain", "checkpointed"])
def test_loop_as_a_node_leaves_other_keys_of_the_parent_unchanged(
    store: CaseStore, mode: str, checkpointed: bool
) -> None:
    graph = StateGraph(Parent)
    graph.add_node("feedback", build_feedback(store, FakeJudge(), limits=LIMITS))
    graph.add_edge(START, "feedback")
    graph.add_edge("feedback", END)
    parent = graph.compile(checkpointer=strict_saver() if checkpointed else None)
    for _ in range(2):
        inputs: Any = {"question": QUESTION, "rounds": 7, "candidates": "own", "reason": "mine"}
        state = parent.invoke(inputs, CONFIG) if mode == "sync" else run_async(parent, inputs)
        assert {name: state[name] for name in inputs} == inputs
        result = FeedbackResult.from_state(state)
        assert hit_ids(result) == hit_ids(run_loop(mode, store, FakeJudge(), limits={"rounds": 3}))


def test_stream_contains_each_round_once_and_equals_the_result(store: CaseStore) -> None:
    graph = build_feedback(store, FakeJudge(), RocchioStrategy(), limits=LIMITS)
    events: list[Any] = []
    state: Any = {}
    for kind, chunk in graph.stream({"question": QUESTION}, stream_mode=["custom", "values"]):
        if kind == "custom":
            events.append(chunk)
        else:
            state = chunk
    rounds = [{"event": "feedback_round", **round_} for round_ in state["feedback"]["rounds"]]
    *round_events, last_event = events
    assert round_events == rounds
    assert last_event == {"event": "feedback_ended", "reason": "rounds", "judge": "scripted"}
    assert [round_["round"] for round_ in rounds] == [1, 2, 3]
    assert [round_["search"] for round_ in rounds] == ["question", "rocchio", "rocchio"]
    assert [(round_["found"], round_["judged"]) for round_ in rounds] == [(4, 4), (3, 3), (3, 3)]
    assert [round_["total"] for round_ in rounds] == [4, 7, 10]


def test_astream_contains_each_round_and_the_error_of_a_failed_judge(store: CaseStore) -> None:
    async def stream_rounds(script: Any) -> list[Any]:
        graph = build_feedback(store, FakeJudge(script), limits=LIMITS)
        stream = graph.astream({"question": QUESTION}, stream_mode="custom")
        *round_events, last_event = [event async for event in stream]
        assert last_event["event"] == "feedback_ended"
        return round_events

    def fails(request: JudgeRequest) -> Any:
        raise ValueError("no model")

    assert [round_["round"] for round_ in asyncio.run(stream_rounds(all_relevant))] == [1, 2, 3]
    assert [round_["judged"] for round_ in asyncio.run(stream_rounds(no_verdicts))] == [4]
    (failed,) = asyncio.run(stream_rounds(fails))
    assert failed["note"] == "The judge failed: ValueError: no model"
