"""Helpers of these tests: tools, graphs with a given plan, and new processes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.types import RetryPolicy
from pydantic import Field

from casewright.graph import Answer, Evidence, Generator, Limits, RunContext, build_graph
from casewright.planner import parse_plan
from casewright.planner.fixed import FixedPlanner
from casewright.tools import CallContext, Parameter, Source, Toolbox, ToolSpec

ROOT = Path(__file__).parents[2]
QUESTION = "how much memory is on my phone"
ANYTHING = frozenset(Source)
#: Retries that cost a test no time.
QUICK = RetryPolicy(max_attempts=3, initial_interval=0.01, backoff_factor=1.0)

Given = Mapping[str, Any]
Run = Callable[[Given, CallContext], Any]


def tool(
    name: str,
    run: Run | None = None,
    run_async: Run | None = None,
    *,
    takes: Sequence[str] = ("a", "b", "c"),
    results: Sequence[str] = ("value",),
) -> ToolSpec:
    """A tool whose parameters may be left out and come from anywhere."""
    parameters = tuple(Parameter(p, sources=ANYTHING, required=False) for p in takes)
    return ToolSpec(name, "A test's.", parameters, tuple(results), run=run, run_async=run_async)


def graph_of(
    tools: Iterable[ToolSpec],
    plan: str,
    generator: Generator | None = None,
    *,
    checkpointer: Any = None,
    **limits: Any,
) -> Any:
    """The compiled graph with a planner that always writes this plan."""
    return build_graph(
        Toolbox(tools),
        FixedPlanner(parse_plan(plan)),
        generator,
        limits=Limits(**{"retry": QUICK, "step_seconds": 10.0, **limits}),
        checkpointer=checkpointer,
    )


class Ask(Protocol):
    """Runs a graph in one of the two modes."""

    mode: str

    def __call__(
        self, graph: Any, given: Any = None, config: Any = None, context: Any = None
    ) -> Answer: ...


class Blocking:
    """Runs a graph with ``invoke``."""

    mode = "sync"

    def __call__(
        self, graph: Any, given: Any = None, config: Any = None, context: Any = None
    ) -> Answer:
        asked = {"question": QUESTION} if given is None else given
        return Answer.from_state(graph.invoke(asked, config, context=context or RunContext()))


class Awaiting:
    """Runs a graph with ``ainvoke``, on an event loop of its own."""

    mode = "async"

    def __call__(
        self, graph: Any, given: Any = None, config: Any = None, context: Any = None
    ) -> Answer:
        asked = {"question": QUESTION} if given is None else given
        run = graph.ainvoke(asked, config, context=context or RunContext())
        return Answer.from_state(asyncio.run(run))


def statuses(answer: Answer) -> dict[str, str]:
    return {step["step"]: step["status"] for step in answer.steps}


def values(answer: Answer) -> dict[str, list[Any]]:
    return {step["step"]: [row["value"] for row in step["rows"]] for step in answer.steps}


def step_of(answer: Answer, name: str) -> Mapping[str, Any]:
    return next(step for step in answer.steps if step["step"] == name)


def evidence(number: int, text: str, *, step: str = "s1", final: bool = True) -> Evidence:
    return Evidence(f"E{number}", step, "find", text, "", {"value": text}, final)


class ScriptedModel(BaseChatModel):
    """Answers with what a function makes of the messages that it is shown."""

    script: Any
    asked: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, messages: list[BaseMessage], *args: Any, **more: Any) -> ChatResult:
        self.asked.append(messages)
        answer = self.script(messages) if callable(self.script) else self.script
        message = answer if isinstance(answer, AIMessage) else AIMessage(answer)
        return ChatResult(generations=[ChatGeneration(message=message)])

    def prompt(self, number: int = -1) -> str:
        """What the model was shown, as one text."""
        return "\n".join(str(message.text) for message in self.asked[number])


def in_background(run: Callable[[], Any]) -> Future[Any]:
    """Start something in a daemon thread: a test that hangs fails, and holds no process."""
    from casewright.tools.deadline import start_daemon

    return start_daemon(run)


def fresh_process(
    code: str, *arguments: str, seconds: float = 30.0, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run Python code in a process of its own; one that does not exit in time is killed.

    Raises:
        AssertionError: It did not exit in time.
    """
    command = [sys.executable, "-c", code, *arguments]
    with (
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as err,
        started(command, out, err, environment) as process,
    ):
        try:
            code_ = process.wait(seconds)
        except subprocess.TimeoutExpired:
            code_ = None
        out.seek(0)
        err.seek(0)
        written = out.read(), err.read()
    assert code_ is not None, f"did not exit within {seconds} s; wrote {written}"
    return subprocess.CompletedProcess(command, code_, *written)


@contextmanager
def started(
    command: list[str], out: Any, err: Any, environment: Mapping[str, str]
) -> Iterator[subprocess.Popen[str]]:
    """Start a process in the repository's root, and see that it is gone at the end."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=err,
        text=True,
        cwd=ROOT,
        env={**os.environ, **environment},
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
