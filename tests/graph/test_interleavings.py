"""The executor in any order of events: results, errors, faults, cancellations, time and replies."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from langgraph.types import Command, interrupt

from casewright.errors import ToolError
from casewright.planner import parse_plan
from casewright.planner.plan import StepRef
from casewright.tools import CallContext
from tests.graph.helpers import QUESTION, QUICK, Given, graph_of, tool
from tests.support.examples import at_most
from tests.support.faulty_saver import Disk, FaultySaver
from tests.support.virtual_loop import VirtualLoop

CONFIG: Any = {"configurable": {"thread_id": "t"}}
SECONDS, ATTEMPTS = 20.0, QUICK.max_attempts


@dataclass
class Called:
    """A call of a tool, which ends as the test says.

    Attributes:
        step: Of the plan.
        given: The arguments.
        ends: What the call waits for: a value, or an error.
    """

    step: str
    given: dict[str, Any]
    ends: asyncio.Future[str]


@st.composite
def plans(draw: st.DrawFn) -> str:
    lines = []
    for number in range(1, draw(st.integers(1, 5)) + 1):
        earlier = st.sampled_from([f"s{k}.value" for k in range(1, number)] or ["question"])
        names = draw(st.sampled_from(["", "a", "ab"]))
        given = ", ".join(f"{name}={draw(earlier)}" for name in names)
        lines.append(f"s{number} = {draw(st.sampled_from(['works', 'works', 'asks']))}({given})")
    return "\n".join(lines)


class Runs(RuleBasedStateMachine):
    """One thread's run, through whatever happens to it."""

    @initialize(plan=plans(), concurrency=st.integers(1, 3))
    def begin(self, plan: str, concurrency: int) -> None:
        self.loop = VirtualLoop()
        self.disk = Disk()
        self.saver = FaultySaver(self.disk)
        self.concurrency = concurrency
        self.plan = parse_plan(plan)
        self.calls: list[Called] = []
        self.attempts: Counter[str] = Counter()
        self.run: asyncio.Task[Any] | None = None
        self.questions: dict[str, str] = {}
        self.answer: dict[str, Any] | None = None
        self.begun = False
        tools = [tool("works", None, self._works), tool("asks", None, self._asks)]
        self.graph = graph_of(
            tools,
            plan,
            checkpointer=self.saver,
            concurrency=concurrency,
            step_seconds=SECONDS,
            retry=QUICK,
        )

    async def _works(self, given: Given, context: CallContext) -> str:
        for kept in self.disk.finished:
            # One that was given what was not kept is called again, and has other arguments then.
            same = (kept["step"], kept["arguments"]) == (context.step, given)
            assert not same, "a finished step was repeated"
        self.attempts[context.step] += 1
        call = Called(context.step, dict(given), self.loop.create_future())
        self.calls.append(call)
        return await call.ends

    async def _asks(self, given: Given, context: CallContext) -> str:
        value = await self._works(given, context)
        return f"{value} and {interrupt(context.step)}"

    @property
    def pending(self) -> list[Called]:
        return [call for call in self.calls if not call.ends.done()]

    @precondition(lambda self: self.run is None and self.answer is None)
    @rule(reply=st.booleans())
    def goes_on(self, reply: bool) -> None:
        """Begin the run, or go on with what is kept of it; with replies, or without."""
        given: Any = None
        if self.questions and reply:
            given = Command(resume={id_: f"reply to {s}" for id_, s in self.questions.items()})
        self.attempts.clear()
        kept = self.saver.get_tuple(CONFIG) is not None
        work = self.graph.ainvoke(given if kept else {"question": QUESTION}, CONFIG)
        self.run = self.loop.create_task(work)
        self._settled()

    @precondition(lambda self: bool(self.pending))
    @rule(which=st.integers(0, 9), how=st.sampled_from(["value", "value", "error", "refusal"]))
    def call_ends(self, which: int, how: str) -> None:
        call = self.pending[which % len(self.pending)]
        if how == "value":
            call.ends.set_result(f"{call.step}#{len(self.calls)}")
        else:
            call.ends.set_exception(OSError("no answer") if how == "error" else ToolError("no"))
        self._settled()

    @rule(seconds=st.sampled_from([0.05, SECONDS / 2, SECONDS + 1]))
    def time_passes(self, seconds: float) -> None:
        self.loop.let_pass(seconds)
        self._settled()

    @precondition(lambda self: self.run is not None)
    @rule()
    def run_is_cancelled(self) -> None:
        assert self.run is not None
        self.run.cancel()
        self._settled()
        assert not self.pending, "a call was left behind"

    @rule(writes=st.integers(0, 6))
    def disk_will_fail(self, writes: int) -> None:
        self.disk.fails_in = writes

    @invariant()
    def budgets_are_kept(self) -> None:
        assert len(self.pending) <= self.concurrency
        assert all(count <= ATTEMPTS for count in self.attempts.values()), self.attempts

    def _settled(self) -> None:
        self.loop.settle()
        if self.run is None or not self.run.done():
            return
        run, self.run = self.run, None
        if run.cancelled():
            return
        if (error := run.exception()) is not None:
            assert isinstance(error, sqlite3.OperationalError), repr(error)
            self.loop.let_pass(1)
            assert not self.pending, "a call was left behind"
            return
        ended = run.result()
        self.questions = {one.id: one.value for one in ended.get("__interrupt__", ())}
        self.answer = None if self.questions else ended["answer"]

    def teardown(self) -> None:
        """Whatever happened, the run comes to its answer, which is of its own steps."""
        if not hasattr(self, "loop"):
            return
        self.disk.fails_in = -1
        for _ in range(60):
            if self.answer is not None:
                break
            if self.run is None:
                self.goes_on(reply=True)
            elif self.pending:
                self.call_ends(0, "value")
            else:
                self.time_passes(1)
        assert self.answer is not None, "the run has no end"
        self._judge(self.answer)
        self.loop.let_pass(1)
        self.loop.close()

    def _judge(self, answer: dict[str, Any]) -> None:
        steps = {step["step"]: step for step in answer["steps"]}
        assert list(steps) == [f"s{number}" for number in range(1, len(self.plan.steps) + 1)]
        for own, planned in zip(steps.values(), self.plan.steps, strict=True):
            refs = {name: v for name, v in planned.arguments if isinstance(v, StepRef)}
            needed = {name: f"s{ref.step}" for name, ref in refs.items()}
            if own["status"] == "skipped":
                assert any(not steps[of]["rows"] for of in needed.values())
                continue
            given = {name: steps[of]["rows"][0]["value"] for name, of in needed.items()}
            assert {name: own["arguments"][name] for name in given} == given
            if own["status"] == "done":
                assert own["rows"][0]["value"].startswith(f"{own['step']}#")
        ids = {item["id"] for item in answer["evidence"]}
        assert set(answer["citations"]) <= ids
        assert answer["citations"] or not ids
        assert answer["text"]


def run_state_machine(examples: int, steps: int) -> None:
    run_state_machine_as_test(
        Runs,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_no_order_of_events_repeats_a_step_mixes_results_or_exceeds_a_budget() -> None:
    run_state_machine(at_most(60), 20)


@pytest.mark.slow
def test_no_long_order_of_events_repeats_a_step_mixes_results_or_exceeds_a_budget() -> None:
    run_state_machine(1500, 60)


def test_skipped_step_runs_after_all_when_its_input_was_not_saved() -> None:
    run = Runs()
    run.begin(plan="s1 = works()\ns2 = works(a=s1.value)\ns3 = works()", concurrency=1)
    run.goes_on(reply=False)
    run.disk_will_fail(writes=0)
    # The first step is out of time, and the second skipped for it: that alone is kept.
    run.time_passes(seconds=SECONDS + 1)
    assert [(kept["step"], kept["status"]) for kept in run.disk.finished] == [("s2", "skipped")]
    run.run_is_cancelled()
    run.teardown()
    assert run.answer is not None
    assert {step["status"] for step in run.answer["steps"]} == {"done"}
