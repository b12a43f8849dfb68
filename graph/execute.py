"""The executor: runs a plan as a DAG inside one LangGraph node.

Every step is one LangGraph ``@task``, called in plan order when the node starts. LangGraph knows a
task by its name and the order of its calls, not by its arguments: called when its inputs are there,
a resumed run could be given the stored result of another step. So a task awaits its inputs inside,
and a step starts as soon as what it refers to is there, with no superstep barrier. A step is
finished once the checkpointer has its result; a resumed run repeats no finished step, but for one
that was given a result which the checkpointer has not.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphInterrupt
from langgraph.func import task

from casewright.errors import InputError
from casewright.graph.call import Call
from casewright.graph.limits import Limits
from casewright.graph.outcome import Outcome
from casewright.graph.references import Known, MissingReferenceError
from casewright.graph.traces import in_step
from casewright.planner import Plan
from casewright.tools import CallContext, Toolbox
from casewright.tools.plain import plain

Write = Callable[[Any], None]
#: Threads that LangGraph's synchronous streaming needs beside those of the steps.
_OWN_THREADS = 3


class Execution:
    """One execution of a plan.

    Args:
        plan: Valid for toolbox, question and context.
        toolbox: Its tools.
        question: What the user asked.
        context: The request's context.
        caller: What tools may know of the call; step and key are filled in.
        limits: The budgets.
        write: Receives an event when a step starts and when it ends.
    """

    def __init__(
        self,
        plan: Plan,
        toolbox: Toolbox,
        question: str,
        context: Mapping[str, Any],
        caller: CallContext,
        limits: Limits,
        write: Write,
    ) -> None:
        self.plan = plan
        self.toolbox = toolbox
        self.question = question
        self.context = context
        self.caller = caller
        self.limits = limits
        self.write = write
        self.began = time.perf_counter()

    def run(self, config: RunnableConfig) -> list[dict[str, Any]]:
        """Run every step from a thread; returns one JSON-plain outcome a step, in plan order."""
        if (config.get("max_concurrency") or _OWN_THREADS) < _OWN_THREADS:
            raise InputError(
                f"max_concurrency={config['max_concurrency']} leaves no thread for the steps of a "
                "plan. Leave it out, and bound the steps by Limits(concurrency=…); or use ainvoke."
            )
        places = threading.Semaphore(self.limits.concurrency)
        futures: list[Any] = []

        def step(number: int) -> dict[str, Any]:
            try:
                needed = {
                    k: Outcome.from_json(futures[k - 1].result()) for k in self._needs(number)
                }
            except GraphInterrupt:
                return _paused([])
            call = self._prepared(number, needed)
            if isinstance(call, Outcome):
                return self._ended(call)
            with places:
                started = self._starts(number)
                call.run()
            return self._ended(self._outcome(number, call, started))

        for number in range(1, len(self.plan.steps) + 1):
            futures.append(_task(step, number, self.plan.steps[number - 1].tool))
        ended: list[dict[str, Any]] = []
        asked: list[GraphInterrupt] = []
        for future in futures:
            try:
                ended.append(future.result())
            except GraphInterrupt as interrupt:
                asked.append(interrupt)
        if asked:
            return _paused(asked)
        for number in range(1, len(ended) + 1):
            if self._stale(number, ended):
                futures[number - 1] = _task(step, number, self.plan.steps[number - 1].tool)
                ended[number - 1] = futures[number - 1].result()
        return ended

    async def arun(self) -> list[dict[str, Any]]:
        """Run every step on the event loop; returns one JSON-plain outcome a step."""
        places = asyncio.Semaphore(self.limits.concurrency)
        futures: list[Any] = []

        async def step(number: int) -> dict[str, Any]:
            try:
                # Shielded: a step that is cancelled must not cancel what others wait for.
                needed = {
                    k: Outcome.from_json(await asyncio.shield(futures[k - 1]))
                    for k in self._needs(number)
                }
            except GraphInterrupt:
                return _paused([])
            call = self._prepared(number, needed)
            if isinstance(call, Outcome):
                return self._ended(call)
            async with places:
                started = self._starts(number)
                await call.arun()
            return self._ended(self._outcome(number, call, started))

        for number in range(1, len(self.plan.steps) + 1):
            futures.append(_task(step, number, self.plan.steps[number - 1].tool))
            # Of a run that is cancelled nobody asks what its steps raised.
            futures[-1].add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        await asyncio.wait(futures)
        ends = [future.exception() for future in futures]
        if asked := [end for end in ends if isinstance(end, GraphInterrupt)]:
            return _paused(asked)
        ended = [future.result() for future in futures]
        for number in range(1, len(ended) + 1):
            if self._stale(number, ended):
                futures[number - 1] = _task(step, number, self.plan.steps[number - 1].tool)
                ended[number - 1] = await futures[number - 1]
        return ended

    def _stale(self, number: int, ended: Sequence[Mapping[str, Any]]) -> bool:
        """Say whether a step was given other results than those that its run ends with.

        A step's result may be kept though that of a step before it could not be: resumed, that one
        is called again, and may return something else.
        """
        needed = {k: Outcome.from_json(ended[k - 1]) for k in self._needs(number)}
        if not needed:
            return False
        skipped = ended[number - 1]["status"] == "skipped"
        try:
            given = self._arguments(number, needed)
        except MissingReferenceError:
            return not skipped
        return bool(skipped or plain(given) != ended[number - 1]["arguments"])

    def _arguments(self, number: int, needed: Mapping[int, Outcome]) -> Mapping[str, Any]:
        return Known(self.question, self.context, needed).arguments(self.plan.steps[number - 1])

    def _needs(self, number: int) -> list[int]:
        return sorted({ref.step for ref in self.plan.steps[number - 1].references()})

    def _prepared(self, number: int, needed: Mapping[int, Outcome]) -> Call | Outcome:
        """Return the call of a step, or its outcome where something that it needs is missing."""
        step = self.plan.steps[number - 1]
        try:
            arguments = self._arguments(number, needed)
        except MissingReferenceError as missing:
            return Outcome(f"s{number}", step.tool, "skipped", error=str(missing))
        own = f"s{number}"
        context = replace(
            self.caller,
            step=own,
            key=f"{self.caller.run_id}:{own}",
            scope=dict(self.caller.scope),
        )
        call = Call(self.toolbox[step.tool], arguments, context, self.limits)
        # LangGraph's writer looks at the context that it is called in; a tool may have left it.
        here = contextvars.copy_context()
        call.told = lambda said: here.copy().run(
            self.write, {"event": "step_report", "step": own, "report": said}
        )
        return call

    def _starts(self, number: int) -> float:
        tool = self.plan.steps[number - 1].tool
        self.write({"event": "step_started", "step": f"s{number}", "tool": tool})
        return time.perf_counter()

    def _outcome(self, number: int, call: Call, started: float) -> Outcome:
        return call.outcome(f"s{number}", started=started, began=self.began)

    def _ended(self, outcome: Outcome) -> dict[str, Any]:
        self.write(
            {
                "event": "step_ended",
                "step": outcome.step,
                "tool": outcome.tool,
                "status": outcome.status,
                "results": len(outcome.rows),
                "milliseconds": outcome.milliseconds,
                "error": outcome.error,
            }
        )
        return outcome.to_json()


def _paused(asked: Sequence[GraphInterrupt]) -> NoReturn:
    """Pause, asking each question once.

    A step that waits for an interrupted one has no question of its own.
    """
    open_questions = {one.id: one for interrupt in asked for one in interrupt.args[0]}
    raise GraphInterrupt(tuple(open_questions.values()))


def _task(step: Callable[[int], Any], number: int, tool: str) -> Any:
    """Call a step as a LangGraph task of its own name and return the task's future."""
    own: Any = partial(step, number)
    return in_step(f"s{number}", tool, task(name=f"s{number} {tool}")(own))
