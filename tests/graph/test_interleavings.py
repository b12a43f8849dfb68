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
from tests.graph.helpers import QUESTION, QUICK_RETRY, Arguments, graph_of, tool
from tests.support.examples import at_most
from tests.support.faulty_saver import Disk, FaultySaver
from tests.support.virtual_loop import VirtualLoop

CONFIG: Any = {"configurable": {"thread_id": "t"}}
SECONDS, ATTEMPTS = 20.0, QUICK_RETRY.max_attempts


@dataclass
class PendingCall:
    """A call of a tool, whose result the test sets.

    Attributes:
        step: The name of the step.
        arguments: The arguments of the call.
        result: The future value or error of the call.
    """

    step: str
    arguments: dict[str, Any]
    result: asyncio.Future[str]


@st.composite
def plans(draw: st.DrawFn) -> str:
    lines = []
    for number in range(1, draw(st.integers(1, 5)) + 1):
        earlier = st.sampled_from([f"s{k}.value" for k in range(1, number)] or ["question"])
        names = draw(st.sampled_from(["", "a", "ab"]))
        args = ", ".join(f"{name}={draw(earlier)}" for name in names)
        lines.append(f"s{number} = {draw(st.sampled_from(['works', 'works', 'asks']))}({args})")
    return "\n".join(lines)


class RunMachine(RuleBasedStateMachine):
    """A run of one thread, with any order of events."""

    @initialize(plan=plans(), concurrency=st.integers(1, 3))
    def begin(self, plan: str, concurrency: int) -> None:
        self.loop = VirtualLoop()
        self.disk = Disk()
        self.saver = FaultySaver(self.disk)
        self.concurrency = concurrency
        self.plan = parse_plan(plan)
        self.calls: list[PendingCall] = []
        self.attempts: Counter[str] = Counter()
        self.run: asyncio.Task[Any] | None = None
        self.questions: dict[str, str] = {}
        self.answer: dict[str, Any] | None = None
        tools = [tool("works", None, self._work), tool("asks", None, self._ask)]
        self.graph = graph_of(
            tools,
            plan,
            checkpointer=self.saver,
            concurrency=concurrency,
            step_seconds=SECONDS,
            retry=QUICK_RETRY,
        )

    async def _work(self, arguments: Arguments, context: CallContext) -> str:
        for outcome in self.disk.finished:
            # A step is repeated only after an input was not saved, and then with other arguments.
            is_repeated = (outcome["step"], outcome["arguments"]) == (context.step, arguments)
            assert not is_repeated, "a finished step was repeated"
        self.attempts[context.step] += 1
        call = PendingCall(context.step, dict(arguments), self.loop.create_future())
        self.calls.append(call)
        return await call.result

    async def _ask(self, arguments: Arguments, context: CallContext) -> str:
        value = await self._work(arguments, context)
        return f"{value} and {interrupt(context.step)}"

    @property
    def pending(self) -> list[PendingCall]:
        return [call for call in self.calls if not call.result.done()]

    @precondition(lambda self: self.run is None and self.answer is None)
    @rule(reply=st.booleans())
    def begin_or_resume(self, reply: bool) -> None:
        """Begin the run, or resume its saved state, with or without replies."""
        inputs: Any = None
        if self.questions and reply:
            inputs = Command(resume={key: f"reply to {s}" for key, s in self.questions.items()})
        self.attempts.clear()
        is_saved = self.saver.get_tuple(CONFIG) is not None
        run = self.graph.ainvoke(inputs if is_saved else {"question": QUESTION}, CONFIG)
        self.run = self.loop.create_task(run)
        self._settle()

    @precondition(lambda self: bool(self.pending))
    @rule(index=st.integers(0, 9), end=st.sampled_from(["value", "value", "error", "refusal"]))
    def end_call(self, index: int, end: str) -> None:
        call = self.pending[index % len(self.pending)]
        if end == "value":
            call.result.set_result(f"{call.step}#{len(self.calls)}")
        else:
            call.result.set_exception(OSError("no answer") if end == "error" else ToolError("no"))
        self._settle()

    @rule(seconds=st.sampled_from([0.05, SECONDS / 2, SECONDS + 1]))
    def pass_time(self, seconds: float) -> None:
        self.loop.advance(seconds)
        self._settle()

    @precondition(lambda self: self.run is not None)
    @rule()
    def cancel_run(self) -> None:
        assert self.run is not None
        self.run.cancel()
        self._settle()
        assert not self.pending, "a call is still pending"

    @rule(writes=st.integers(0, 6))
    def let_disk_fail(self, writes: int) -> None:
        self.disk.fails_in = writes

    @invariant()
    def check_budgets(self) -> None:
        assert len(self.pending) <= self.concurrency
        assert all(count <= ATTEMPTS for count in self.attempts.values()), self.attempts

    def _settle(self) -> None:
        self.loop.settle()
        if self.run is None or not self.run.done():
            return
        run, self.run = self.run, None
        if run.cancelled():
            return
        if (error := run.exception()) is not None:
            assert isinstance(error, sqlite3.OperationalError), repr(error)
            self.loop.advance(1)
            assert not self.pending, "a call is still pending"
            return
        state = run.result()
        self.questions = {pause.id: pause.value for pause in state.get("__interrupt__", ())}
        self.answer = None if self.questions else state["answer"]

    def teardown(self) -> None:
        """Let the run end without further faults, and check its answer."""
        if not hasattr(self, "loop"):
            return
        self.disk.fails_in = -1
        for _ in range(60):
            if self.answer is not None:
                break
            if self.run is None:
                self.begin_or_resume(reply=True)
            elif self.pending:
                self.end_call(0, "value")
            else:
                self.pass_time(1)
        assert self.answer is not None, "the run did not end"
        self._check_answer(self.answer)
        self.loop.advance(1)
        self.loop.close()

    def _check_answer(self, answer: dict[str, Any]) -> None:
        steps = {step["step"]: step for step in answer["steps"]}
        assert list(steps) == [f"s{number}" for number in range(1, len(self.plan.steps) + 1)]
        for step, planned in zip(steps.values(), self.plan.steps, strict=True):
            refs = {name: v for name, v in planned.arguments if isinstance(v, StepRef)}
            needed = {name: f"s{ref.step}" for name, ref in refs.items()}
            if step["status"] == "skipped":
                assert any(not steps[need]["rows"] for need in needed.values())
                continue
            inputs = {name: steps[need]["rows"][0]["value"] for name, need in needed.items()}
            assert {name: step["arguments"][name] for name in inputs} == inputs
            if step["status"] == "done":
                assert step["rows"][0]["value"].startswith(f"{step['step']}#")
        ids = {item["id"] for item in answer["evidence"]}
        assert set(answer["citations"]) <= ids
        assert answer["citations"] or not ids
        assert answer["text"]


def run_state_machine(examples: int, steps: int) -> None:
    run_state_machine_as_test(
        RunMachine,
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


def test_skipped_step_runs_when_the_resumed_run_provides_its_input() -> None:
    machine = RunMachine()
    machine.begin(plan="s1 = works()\ns2 = works(a=s1.value)\ns3 = works()", concurrency=1)
    machine.begin_or_resume(reply=False)
    machine.let_disk_fail(writes=0)
    # The first step times out and is not saved; the second is skipped for it and saved.
    machine.pass_time(seconds=SECONDS + 1)
    (outcome,) = machine.disk.finished
    assert (outcome["step"], outcome["status"]) == ("s2", "skipped")
    machine.cancel_run()
    machine.teardown()
    assert {step["status"] for step in machine.answer["steps"]} == {"done"}
