"""Steps that mending adds have the same budget and approval as the first plan."""

from __future__ import annotations

from collections import Counter
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from casewright.graph import Limits, build_graph
from casewright.planner import Plan, parse_plan
from casewright.tools import Toolbox, tool_from_function
from tests.graph.helpers import QUESTION
from tests.graph.mend_worker import TwoPlans

PLAN = "s1 = find(a=question)\ns2 = work(a=s1.value)\ns3 = work(a=question)"
#: The plan for the rest, after the first step found nothing; its s1 has run.
REST = "s1 = work(a=question)\ns2 = search(a=question)\ns3 = work(a=s2.value)"
LONGER = f"{PLAN}\ns4 = search(a=question)\ns5 = work(a=s4.value)"
CONFIG: Any = {"configurable": {"thread_id": "mended"}}


class MendingGraph:
    """A mending graph that counts its calls; its ``find`` finds nothing.

    The first ``fails`` calls of ``find`` fail.
    """

    def __init__(self, declares: str = "", fails: int = 0, **options: Any) -> None:
        self.calls: Counter[str] = Counter()

        def find(a: str) -> list[dict[str, str]]:
            """Finds."""
            self.calls["find"] += 1
            if self.calls["find"] <= fails:
                raise ConnectionError
            return []

        def work(a: str) -> dict[str, str]:
            """Works."""
            self.calls["work"] += 1
            return {"value": a}

        def search(a: str) -> dict[str, str]:
            """Searches."""
            self.calls["search"] += 1
            return {"value": a}

        tools = [
            tool_from_function(function, results=("value",), approval=function.__name__ == declares)
            for function in (find, work, search)
        ]
        self.planner, saver = TwoPlans(PLAN, REST), InMemorySaver()
        options |= {"mend": "empty", "checkpointer": saver}
        self.graph = build_graph(Toolbox(tools), self.planner, **options)

    def ask(self) -> Any:
        return self.graph.invoke({"question": QUESTION}, CONFIG)

    def reply(self, text: str) -> Any:
        return self.graph.invoke(Command(resume=text), CONFIG)


def test_added_step_waits_when_its_tool_declares_approval() -> None:
    mending = MendingGraph(declares="search")
    (pause,) = mending.ask()["__interrupt__"]
    assert pause.value["why"] == "Approval is declared by search."
    assert pause.value["plan"] == LONGER
    assert mending.calls == {"find": 1, "work": 1}
    answer = mending.reply("yes")["answer"]
    assert answer["plan"] == LONGER
    assert mending.calls == {"find": 1, "work": 2, "search": 1}, "a step ran twice"


def test_rejected_added_steps_leave_earlier_evidence_in_the_answer() -> None:
    mending = MendingGraph(declares="search")
    mending.ask()
    answer = mending.reply("no")["answer"]
    statuses = [step["status"] for step in answer["steps"]]
    assert statuses == ["empty", "skipped", "done", "skipped", "skipped"]
    assert [item["step"] for item in answer["evidence"]] == ["s3"]
    assert mending.calls["search"] == 0


def test_edited_plan_cannot_change_the_steps_that_have_run() -> None:
    mending = MendingGraph(declares="search")
    mending.ask()
    (pause,) = mending.reply("s1 = work(a=question)")["__interrupt__"]
    assert pause.value["violations"] == [
        "plan: The first 3 steps have run. Keep them unchanged at the beginning."
    ]
    answer = mending.reply(f"{PLAN}\ns4 = work(a=question)")["answer"]
    assert [step["tool"] for step in answer["steps"]] == ["find", "work", "work", "work"]
    assert mending.calls == {"find": 1, "work": 2}


def test_approved_plan_is_mended_without_another_approval() -> None:
    mending = MendingGraph(declares="find")
    (pause,) = mending.ask()["__interrupt__"]
    assert pause.value["plan"] == PLAN
    assert mending.reply("yes")["answer"]["plan"] == LONGER
    assert mending.calls == {"find": 1, "work": 2, "search": 1}


def test_added_steps_wait_when_their_price_exceeds_the_approval_limit() -> None:
    mending = MendingGraph(approve={"calls": 4})
    (pause,) = mending.ask()["__interrupt__"]
    assert "exceeds the limit for plans without approval: calls" in pause.value["why"]
    assert mending.calls == {"find": 1, "work": 1}


def test_retries_of_first_steps_count_towards_the_budget_of_added_steps() -> None:
    mending = MendingGraph(fails=1, limits=Limits(calls=4))
    answer = mending.ask()["answer"]
    assert mending.calls["find"] == 2, "the first call failed"
    assert mending.calls.total() <= 4
    assert answer["plan"] == PLAN
    larger = MendingGraph(fails=1, limits=Limits(calls=5))
    assert larger.ask()["answer"]["plan"] == f"{PLAN}\ns4 = search(a=question)"
    assert larger.calls.total() <= 5


def test_replanning_gets_the_budget_that_the_first_steps_left() -> None:
    mending = MendingGraph(limits=Limits(calls=4, tool_calls={"find": 1}))
    mending.ask()
    request = mending.planner.requests[1]
    assert request.max_steps == 3, "only the call of find should count"
    assert "find" not in request.toolbox
    three_steps = parse_plan("s1 = work()\ns2 = work()\ns3 = work()")
    assert not request.excess(three_steps)
    assert "calls 5, at most 4" in request.excess(Plan((*three_steps.steps, three_steps.steps[0])))


def test_last_added_steps_are_left_out_beyond_the_budget() -> None:
    mending = MendingGraph(limits=Limits(calls=4))
    answer = mending.ask()["answer"]
    assert answer["plan"] == f"{PLAN}\ns4 = search(a=question)"
    assert mending.calls.total() <= 4
    assert any("budget" in sentence for sentence in answer["missing"])
