"""A feedback loop as the search of a step: its results and reports."""

from __future__ import annotations

import time
from typing import Any

import pytest

from casewright.graph.feedback import FeedbackLimits, FeedbackSearch
from casewright.stores import CaseStore
from casewright.stores.feedback import JudgeRequest, RocchioStrategy, Verdicts
from casewright.tools import ToolSpec, tool_from_store
from tests.graph.feedback_helpers import QUESTION, FakeJudge, note_store
from tests.graph.helpers import Ask, graph_of

PLAN = "s1 = notes(query=question)"
LIMITS = FeedbackLimits(first=4, more=3, rounds=3)


@pytest.fixture(scope="module")
def store() -> CaseStore:
    return note_store()


def first_only(request: JudgeRequest) -> Verdicts:
    return Verdicts(frozenset(case.id for case in request.candidates[:1]))


def tool_with_loop(store: CaseStore, judge: Any, *, k: int = 8, **options: Any) -> ToolSpec:
    search = FeedbackSearch(store, judge, RocchioStrategy(), limits=LIMITS, **options)
    return tool_from_store(store, name="notes", description="Notes.", k=k, search=search)


def test_step_returns_confirmed_cases_and_reports_every_round(ask: Ask, store: CaseStore) -> None:
    answer = ask(
        graph_of([tool_with_loop(store, FakeJudge(first_only))], PLAN), {"question": QUESTION}
    )
    (step,) = answer.steps
    assert len(step["rows"]) == 3
    *rounds, last_report = step["reports"]
    assert [round_["round"] for round_ in rounds] == [1, 2, 3]
    assert [round_["total"] for round_ in rounds] == [1, 2, 3]
    assert (last_report["reason"], last_report["judge"]) == ("rounds", "scripted")


def test_step_returns_hits_of_a_single_search_when_no_case_is_confirmed(
    ask: Ask, store: CaseStore
) -> None:
    plain = tool_from_store(store, name="notes", description="Notes.", k=4)
    single = ask(graph_of([plain], PLAN), {"question": QUESTION})
    judge = FakeJudge(lambda request: Verdicts(frozenset()))
    looped = ask(graph_of([tool_with_loop(store, judge, k=4)], PLAN), {"question": QUESTION})
    assert looped.steps[0]["rows"] == single.steps[0]["rows"]
    assert single.steps[0]["reports"] == []


def test_step_without_fallback_is_empty_when_no_case_is_confirmed(
    ask: Ask, store: CaseStore
) -> None:
    judge = FakeJudge(lambda request: Verdicts(frozenset()))
    answer = ask(
        graph_of([tool_with_loop(store, judge, fallback=False)], PLAN), {"question": QUESTION}
    )
    assert answer.steps[0]["status"] == "empty"
    assert answer.steps[0]["reports"][-1]["reason"] == "nothing_relevant"


def test_stream_contains_the_rounds_as_step_reports(store: CaseStore) -> None:
    graph = graph_of([tool_with_loop(store, FakeJudge(first_only))], PLAN)
    events = list(graph.stream({"question": QUESTION}, stream_mode="custom"))
    kinds = [event["event"] for event in events]
    assert kinds.index("step_started") < kinds.index("step_report") < kinds.index("step_ended")
    reports = [event["report"] for event in events if event["event"] == "step_report"]
    assert [report.get("round") for report in reports] == [1, 2, 3, None]


def test_hanging_judge_delays_the_step_no_longer_than_the_loop_deadline(
    ask: Ask, store: CaseStore
) -> None:
    judge = FakeJudge(lambda request: time.sleep(5))
    search = FeedbackSearch(store, judge, limits=FeedbackLimits(first=4, seconds=0.2))
    tool = tool_from_store(store, name="notes", description="Notes.", k=4, search=search)
    start = time.perf_counter()
    answer = ask(graph_of([tool], PLAN), {"question": QUESTION})
    assert time.perf_counter() - start < 3
    assert answer.steps[0]["status"] == "done"
    assert answer.steps[0]["reports"][-1]["reason"] == "deadline"


def test_filter_of_the_tool_holds_in_every_round(ask: Ask, store: CaseStore) -> None:
    judge = FakeJudge()
    search = FeedbackSearch(store, judge, RocchioStrategy(), limits=LIMITS)
    tool = tool_from_store(
        store, name="notes", description="Notes.", k=20, search=search, filters=["even"]
    )
    plan = "s1 = notes(even=context.even, query=question)"
    ask(graph_of([tool], plan), {"question": QUESTION, "context": {"even": True}})
    candidates = [case for request in judge.requests for case in request.candidates]
    assert len(candidates) > LIMITS.first
    assert all(candidate.hit.case.metadata["even"] for candidate in candidates)


def test_loop_within_a_step_writes_no_checkpoints(store: CaseStore) -> None:
    from langgraph.checkpoint.memory import InMemorySaver

    saver = InMemorySaver()
    graph = graph_of([tool_with_loop(store, FakeJudge(first_only))], PLAN, checkpointer=saver)
    config: Any = {"configurable": {"thread_id": "one"}}
    graph.invoke({"question": QUESTION}, config)
    namespaces = {entry.config["configurable"]["checkpoint_ns"] for entry in saver.list(None)}
    assert namespaces == {""}
