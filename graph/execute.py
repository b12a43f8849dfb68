"""The executor: runs a plan as a DAG inside one LangGraph node.

Every step is one LangGraph ``@task``; all tasks are started in plan order when the node starts.
LangGraph identifies a task by its name and the order of starts, not by its arguments: if a task
were started only when its inputs are ready, a resumed run could get the stored result of another
step. So each task awaits its inputs itself, and calls its tool as soon as the inputs are ready,
without a superstep barrier. A step is finished once the checkpointer has the step's result. A
resumed run repeats no finished step, unless the checkpoint lacks an input of the step.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from inspect import Signature
from math import inf
from typing import Any, NoReturn

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphInterrupt
from langgraph.func import task

from casewright.errors import InputError
from casewright.graph.call import Call
from casewright.graph.evidence import collect_evidence
from casewright.graph.extractive import ExtractiveGenerator
from casewright.graph.generator import GenerationRequest
from casewright.graph.limits import Limits
from casewright.graph.outcome import MissingReferenceError, Outcome, StepInputs
from casewright.graph.traces import call_attributes, start_in_step, step_span
from casewright.planner import Plan, Step
from casewright.tools import CallContext, Toolbox
from casewright.tools.body import Body, Work, arun, run
from casewright.tools.results import plain

#: Threads that LangGraph's synchronous streaming needs, besides those of the steps.
_STREAM_THREADS = 3
_NO_ARGUMENT = Signature()


@dataclass(eq=False)
class Execution:
    """Execution of a valid plan.

    Attributes:
        call_context: The context of the tool calls, without the ``step`` and ``key`` of a call.
        write: Writes an event to the run's stream, such as the start or the end of a step.
        finished: Outcomes, as JSON, of the plan's first steps; these steps are not run again.
        seconds: Time limit of all steps; a step that is still running at the limit is abandoned.
    """

    plan: Plan
    toolbox: Toolbox
    question: str
    context: Mapping[str, Any]
    call_context: CallContext
    limits: Limits
    write: Callable[[Any], None]
    finished: Sequence[dict[str, Any]] = ()
    seconds: float = inf

    def __post_init__(self) -> None:
        # The times of new steps continue after the end of the finished steps.
        end_times = (step["started"] + step["milliseconds"] for step in self.finished)
        now = time.perf_counter()
        self._started, self._deadline = now - max(end_times, default=0.0) / 1000, now + self.seconds
        self._futures: dict[int, Any] = {}
        self._retries: Counter[int] = Counter()
        self._retry_lock = threading.Lock()
        self._slots = threading.Semaphore(self.limits.concurrency)
        self._aslots = asyncio.Semaphore(self.limits.concurrency)

    def run(self, config: RunnableConfig) -> list[dict[str, Any]]:
        """Run every step in threads; return one outcome per step, as JSON, in plan order."""
        if (config.get("max_concurrency") or _STREAM_THREADS) < _STREAM_THREADS:
            raise InputError(
                f"max_concurrency={config['max_concurrency']} leaves no thread for the steps of a "
                "plan. Leave it out, and bound the steps by Limits(concurrency=…); or use ainvoke."
            )
        return run(self._plan_body(lambda number: run(self._step_body(number))))

    async def arun(self) -> list[dict[str, Any]]:
        """Run every step on the event loop; return one outcome per step, as JSON, in plan order."""

        async def step(number: int) -> dict[str, Any]:
            return await arun(self._step_body(number))

        return await arun(self._plan_body(step))

    def _plan_body(self, run_step: Callable[[int], Any]) -> Body[list[dict[str, Any]]]:
        new_numbers = range(len(self.finished) + 1, len(self.plan.steps) + 1)
        for number in new_numbers:
            self._futures[number] = self._start_task(run_step, number)
        # On an event loop, all steps must have ended before the error of a step is raised.
        if futures := list(self._futures.values()):
            yield Work(lambda: None, lambda: asyncio.wait(futures))
        outcomes = list(self.finished)
        interrupts: list[GraphInterrupt] = []
        for number in new_numbers:
            try:
                outcomes.append((yield self._wait_for(number)))
            except GraphInterrupt as interrupt:
                interrupts.append(interrupt)
        if interrupts:
            _raise_interrupt(interrupts)
        for number in new_numbers:
            if self._has_outdated_inputs(number, outcomes):
                self._futures[number] = self._start_task(run_step, number)
                outcomes[number - 1] = yield self._wait_for(number)
        return outcomes

    def _step_body(self, number: int) -> Body[dict[str, Any]]:
        inputs: dict[int, Outcome] = {}
        try:
            for input_number in self._input_steps(number):
                inputs[input_number] = Outcome.from_json(
                    self.finished[input_number - 1]
                    if input_number <= len(self.finished)
                    else (yield self._wait_for(input_number))
                )
        except GraphInterrupt:
            # The interrupted step has the questions; this step only waits for it, and adds none.
            _raise_interrupt([])
        name, tool = f"s{number}", self.plan.steps[number - 1].tool
        try:
            call = self._make_call(number, self._arguments(number, inputs))
        except MissingReferenceError as error:
            outcome = Outcome(name, tool, "skipped", error=str(error))
        else:
            started = yield Work(
                partial(self._run_call, name, call), partial(self._arun_call, name, call)
            )
            outcome = call.outcome(name, started=started, plan_started=self._started)
        # The event has quotations, so that a page can show results before the answer.
        evidence = collect_evidence(self.plan, [outcome], self.toolbox)
        quotations = ExtractiveGenerator().quotations(GenerationRequest(self.question, evidence))
        self.write(
            {
                "event": "step_ended",
                "step": name,
                "tool": tool,
                "status": outcome.status,
                "results": len(outcome.rows),
                "milliseconds": outcome.milliseconds,
                "error": outcome.error,
                "evidence": [{"text": item.text, "source": item.source} for item in evidence],
                "sentences": [sentence for _, sentence in quotations],
            }
        )
        return outcome.to_json()

    def _run_call(self, name: str, call: Call) -> float:
        with self._slots:
            started = time.perf_counter()
            with step_span(name, call) as add_attributes:
                if self._limit_call(name, call, started):
                    call.run()
                    self._explain_timeout(call)
                add_attributes(call_attributes(call))
        return started

    async def _arun_call(self, name: str, call: Call) -> float:
        async with self._aslots:
            started = time.perf_counter()
            with step_span(name, call) as add_attributes:
                if self._limit_call(name, call, started):
                    await call.arun()
                    self._explain_timeout(call)
                add_attributes(call_attributes(call))
        return started

    def _limit_call(self, name: str, call: Call, now: float) -> bool:
        """If time is left, limit a call to the deadline, write an event, and return ``True``."""
        seconds_left = self._deadline - now
        if seconds_left <= 0:
            call.timed_out, call.error = True, "The run's deadline passed before the step started."
            return False
        call.limits = replace(call.limits, step_seconds=min(call.limits.step_seconds, seconds_left))
        self.write({"event": "step_started", "step": name, "tool": call.tool.name})
        return True

    def _explain_timeout(self, call: Call) -> None:
        if call.timed_out and call.limits.step_seconds < self.limits.step_seconds:
            call.error = "The run's deadline passed before the step ended."

    def _start_task(self, run_step: Callable[[int], Any], number: int) -> Any:
        """Start a step as a LangGraph task with its own name, and return the task's future."""
        name, tool = f"s{number}", self.plan.steps[number - 1].tool
        function: Any = partial(run_step, number)
        # Without a signature, LangGraph would inspect the function twice.
        function.__signature__ = _NO_ARGUMENT
        future = start_in_step(name, tool, task(name=f"{name} {tool}")(function))
        # asyncio logs an exception that nothing retrieves, as in a cancelled run.
        future.add_done_callback(lambda task: task.cancelled() or task.exception())
        return future

    def _wait_for(self, number: int) -> Work:
        future = self._futures[number]
        # Without the shield, a cancelled step would cancel a step that other steps wait for.
        return Work(future.result, lambda: asyncio.shield(future))

    def _has_outdated_inputs(self, number: int, outcomes: Sequence[Mapping[str, Any]]) -> bool:
        # A step's result may be saved while an earlier step's result is not: a resumed run repeats
        # the earlier step, which may return another result.
        inputs = {step: Outcome.from_json(outcomes[step - 1]) for step in self._input_steps(number)}
        if not inputs:
            return False
        was_skipped = outcomes[number - 1]["status"] == "skipped"
        try:
            arguments = self._arguments(number, inputs)
        except MissingReferenceError:
            return not was_skipped
        return bool(was_skipped or plain(arguments) != outcomes[number - 1]["arguments"])

    def _arguments(self, number: int, inputs: Mapping[int, Outcome]) -> Mapping[str, Any]:
        values = StepInputs(self.question, self.context, inputs)
        return values.arguments(self.plan.steps[number - 1])

    def _input_steps(self, number: int) -> list[int]:
        return sorted({ref.step for ref in self.plan.steps[number - 1].references()})

    def _make_call(self, number: int, arguments: Mapping[str, Any]) -> Call:
        name = f"s{number}"
        context = replace(
            self.call_context,
            step=name,
            key=f"{self.call_context.run_id}:{name}",
            scope=dict(self.call_context.scope),
        )
        tool = self.toolbox[self.plan.steps[number - 1].tool]
        # A tool may change the context variables that LangGraph's writer reads: keep a copy.
        step_context = contextvars.copy_context()

        def on_report(row: Mapping[str, Any]) -> None:
            event = {"event": "step_report", "step": name, "report": row}
            step_context.copy().run(self.write, event)

        may_retry = partial(self._may_retry, number)
        return Call(tool, arguments, context, self.limits, on_report=on_report, may_retry=may_retry)

    def _may_retry(self, number: int) -> bool:
        """If the budget allows a retry of a step, count the retry and return ``True``."""
        if not self.limits.budget():
            return True
        with self._retry_lock:
            self._retries[number] += 1
            retries = self._retries | self._retries_of_ended_steps()  # the higher of both counts
            retry_steps = [Step(self.plan.steps[n - 1].tool) for n in retries.elements()]
            plan = Plan((*self.plan.steps, *retry_steps))
            if not self.limits.excess(plan.price(self.toolbox)):
                return True
            self._retries[number] -= 1
            return False

    def _retries_of_ended_steps(self) -> Counter[int]:
        """Return the retries of each step that has ended, also those before the run was resumed."""
        retry_counts = {
            number: future.result()["attempts"] - 1
            for number, future in tuple(self._futures.items())
            if future.done() and not future.cancelled() and not future.exception()
        }
        retry_counts |= {
            number: outcome["attempts"] - 1 for number, outcome in enumerate(self.finished, 1)
        }
        return Counter({number: retries for number, retries in retry_counts.items() if retries > 0})


def _raise_interrupt(interrupts: Sequence[GraphInterrupt]) -> NoReturn:
    """Raise one interrupt with the questions of all interrupts, each question once."""
    questions = {q.id: q for interrupt in interrupts for q in interrupt.args[0]}
    raise GraphInterrupt(tuple(questions.values()))
