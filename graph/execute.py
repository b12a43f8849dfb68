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
from casewright.tools.body import Body, Work, arun, run
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
        self._futures: dict[int, Any] = {}
        self._places = threading.Semaphore(limits.concurrency)
        self._aplaces = asyncio.Semaphore(limits.concurrency)

    def run(self, config: RunnableConfig) -> list[dict[str, Any]]:
        """Run every step from a thread; return one JSON-plain outcome a step, in plan order."""
        if (config.get("max_concurrency") or _OWN_THREADS) < _OWN_THREADS:
            raise InputError(
                f"max_concurrency={config['max_concurrency']} leaves no thread for the steps of a "
                "plan. Leave it out, and bound the steps by Limits(concurrency=…); or use ainvoke."
            )
        return run(self._steps(lambda number: run(self._step(number))))

    async def arun(self) -> list[dict[str, Any]]:
        """Run every step on the event loop; return one JSON-plain outcome a step."""

        async def step(number: int) -> dict[str, Any]:
            return await arun(self._step(number))

        return await arun(self._steps(step))

    def _steps(self, step: Callable[[int], Any]) -> Body[list[dict[str, Any]]]:
        numbers = range(1, len(self.plan.steps) + 1)
        for number in numbers:
            self._futures[number] = self._begun(step, number)
        # On an event loop, one that raises is not to leave the others at work.
        yield Work(lambda: None, lambda: asyncio.wait(list(self._futures.values())))
        ended: list[dict[str, Any]] = []
        asked: list[GraphInterrupt] = []
        for number in numbers:
            try:
                ended.append((yield self._result(number)))
            except GraphInterrupt as interrupt:
                asked.append(interrupt)
        if asked:
            return _paused(asked)
        for number in numbers:
            if self._stale(number, ended):
                self._futures[number] = self._begun(step, number)
                ended[number - 1] = yield self._result(number)
        return ended

    def _step(self, number: int) -> Body[dict[str, Any]]:
        needed: dict[int, Outcome] = {}
        try:
            for earlier in self._needs(number):
                needed[earlier] = Outcome.from_json((yield self._result(earlier)))
        except GraphInterrupt:
            return _paused([])
        call = self._prepared(number, needed)
        if isinstance(call, Call):
            started = yield Work(
                partial(self._call, number, call), partial(self._acall, number, call)
            )
            call = call.outcome(f"s{number}", started=started, began=self.began)
        return self._ended(call)

    def _call(self, number: int, call: Call) -> float:
        with self._places:
            started = self._starts(number)
            call.run()
        return started

    async def _acall(self, number: int, call: Call) -> float:
        async with self._aplaces:
            started = self._starts(number)
            await call.arun()
        return started

    def _begun(self, step: Callable[[int], Any], number: int) -> Any:
        """Call a step as a LangGraph task of its own name, and return the task's future."""
        tool = self.plan.steps[number - 1].tool
        own: Any = partial(step, number)
        future = in_step(f"s{number}", tool, task(name=f"s{number} {tool}")(own))
        # Of a run that is cancelled nobody asks what its steps raised.
        future.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        return future

    def _result(self, number: int) -> Work:
        future = self._futures[number]
        # Shielded: a step that is cancelled must not cancel what others wait for.
        return Work(future.result, lambda: asyncio.shield(future))

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
