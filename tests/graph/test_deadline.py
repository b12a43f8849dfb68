"""At the deadline, a run answers from the finished steps and names the missing ones."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from casewright.graph import ChatGenerator, Limits, RunContext, build_graph
from casewright.planner import PlanResult, parse_plan
from casewright.planner.fixed import FixedPlanner
from casewright.tools import CallContext, Toolbox
from tests.graph.helpers import Arguments, Ask, ScriptedModel, graph_of, statuses, step_of, tool

#: Seconds of a slow tool or planner; no test waits for it.
SLOW = 20.0


def quick(arguments: Arguments, context: CallContext) -> str:
    return "8 GB"


def slow(arguments: Arguments, context: CallContext) -> str:
    time.sleep(SLOW)
    return "late"


async def slow_async(arguments: Arguments, context: CallContext) -> str:
    await asyncio.sleep(SLOW)
    return "late"


TOOLS = [tool("quick", quick), tool("slow", slow, slow_async)]
PLAN = "s1 = quick()\ns2 = slow()\ns3 = quick(a=s2.value)"


class SlowPlanner:
    """A planner that takes longer than any deadline of these tests."""

    name = "slow"

    def plan(self, request: Any) -> PlanResult:
        time.sleep(SLOW)
        return PlanResult(parse_plan(PLAN), self.name)

    async def aplan(self, request: Any) -> PlanResult:
        await asyncio.sleep(SLOW)
        return self.plan(request)


def ask_in_time(ask: Ask, graph: Any, **context: Any) -> Any:
    start = time.perf_counter()
    answer = ask(graph, context=RunContext(**context))
    assert time.perf_counter() - start < 3.0
    return answer


@pytest.mark.parametrize("source", ["graph", "request"])
def test_answer_at_the_deadline_cites_finished_steps_and_lists_the_others_as_missing(
    ask: Ask, source: str
) -> None:
    graph = graph_of(TOOLS, PLAN, **({"deadline": 0.3} if source == "graph" else {}))
    answer = ask_in_time(ask, graph, limits={"deadline": 0.3} if source == "request" else None)
    assert statuses(answer) == {"s1": "done", "s2": "timed_out", "s3": "skipped"}
    assert answer.citations == ["E1"]
    assert "8 GB [E1]" in answer.text
    assert (
        answer.missing[0]
        == "s2 (slow) took too long. The run's deadline passed before the step ended."
    )
    assert step_of(answer, "s2")["milliseconds"] == pytest.approx(300, abs=200)


def test_step_that_waits_for_a_free_slot_until_the_deadline_is_not_called(ask: Ask) -> None:
    plan = "s1 = slow()\ns2 = slow()"
    answer = ask_in_time(ask, graph_of(TOOLS, plan, deadline=0.2, concurrency=1))
    # Either step may get the slot.
    (skipped,) = (step["step"] for step in answer.steps if not step["attempts"])
    assert (
        f"{skipped} (slow) took too long. The run's deadline passed before the step started."
        in answer.missing
    )


def test_planning_time_counts_towards_the_deadline(ask: Ask) -> None:
    graph = build_graph(Toolbox(TOOLS), SlowPlanner(), limits=Limits(deadline=0.2))
    answer = ask_in_time(ask, graph)
    assert "deadline left 0.2 s" in answer.planner["fallback"]
    assert not answer.evidence


def test_chat_model_that_misses_the_deadline_is_replaced_by_quotations(ask: Ask) -> None:
    def answer_late(messages: Any) -> str:
        time.sleep(2.0)
        return "late [E1]"

    planner = FixedPlanner(parse_plan("s1 = quick()"))
    graph = build_graph(
        Toolbox(TOOLS),
        planner,
        ChatGenerator(ScriptedModel(script=answer_late)),
        limits=Limits(deadline=0.3),
    )
    answer = ask_in_time(ask, graph)
    assert answer.generator == "extractive"
    assert "8 GB [E1]" in answer.text


def test_plan_is_not_mended_after_the_deadline(ask: Ask) -> None:
    graph = graph_of(TOOLS, PLAN, deadline=0.2)
    assert "mended" not in ask_in_time(ask, graph, mend="empty").planner


def test_run_within_the_deadline_finishes_all_steps(ask: Ask) -> None:
    plan = "s1 = quick()\ns2 = quick(a=s1.value)"
    answer = ask(graph_of(TOOLS, plan, deadline=5.0))
    assert statuses(answer) == {"s1": "done", "s2": "done"}
    assert answer.missing == []


def test_step_ended_events_contain_evidence_and_provisional_sentences() -> None:
    graph = graph_of(TOOLS, PLAN, deadline=0.3)
    events = graph.stream({"question": "how much memory"}, stream_mode="custom")
    end_events = {event["step"]: event for event in events if event["event"] == "step_ended"}
    assert end_events["s1"]["evidence"] == [{"text": "8 GB", "source": ""}]
    assert end_events["s1"]["sentences"] == ["8 GB"]
    assert end_events["s2"]["evidence"] == end_events["s3"]["sentences"] == []
