"""Helpers of the tests of the graph: tools, graphs with a fixed plan, and new processes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
ANY_SOURCE = frozenset(Source)
#: Three attempts that are repeated almost at once.
QUICK_RETRY = RetryPolicy(max_attempts=3, initial_interval=0.01, backoff_factor=1.0)

Arguments = Mapping[str, Any]
Run = Callable[[Arguments, CallContext], Any]


def tool(
    name: str,
    run: Run | None = None,
    run_async: Run | None = None,
    *,
    takes: Sequence[str] = ("a", "b", "c"),
    results: Sequence[str] = ("value",),
) -> ToolSpec:
    """Return a tool whose parameters are optional and accept values of any source."""
    parameters = tuple(Parameter(key, sources=ANY_SOURCE, required=False) for key in takes)
    return ToolSpec(name, "A test's.", parameters, tuple(results), run=run, run_async=run_async)


def graph_of(
    tools: Iterable[ToolSpec],
    plan: str,
    generator: Generator | None = None,
    *,
    checkpointer: Any = None,
    **limits: Any,
) -> Any:
    """Return the compiled graph with a planner that always returns this plan."""
    return build_graph(
        Toolbox(tools),
        FixedPlanner(parse_plan(plan)),
        generator,
        limits=Limits(**{"retry": QUICK_RETRY, "step_seconds": 10.0, **limits}),
        checkpointer=checkpointer,
    )


class Ask(Protocol):
    """A function that runs a graph in one of the two modes."""

    mode: str

    def __call__(
        self, graph: Any, inputs: Any = None, config: Any = None, context: Any = None
    ) -> Answer: ...


class Blocking:
    """Runs a graph with ``invoke``."""

    mode = "sync"

    def __call__(
        self, graph: Any, inputs: Any = None, config: Any = None, context: Any = None
    ) -> Answer:
        state = {"question": QUESTION} if inputs is None else inputs
        return Answer.from_state(graph.invoke(state, config, context=context or RunContext()))


class Awaiting:
    """Runs a graph with ``ainvoke``, on an event loop of its own."""

    mode = "async"

    def __call__(
        self, graph: Any, inputs: Any = None, config: Any = None, context: Any = None
    ) -> Answer:
        state = {"question": QUESTION} if inputs is None else inputs
        run = graph.ainvoke(state, config, context=context or RunContext())
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
    """A chat model that answers with its script: a text, or a function of the messages."""

    script: Any
    requests: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, messages: list[BaseMessage], *args: Any, **options: Any) -> ChatResult:
        self.requests.append(messages)
        answer = self.script(messages) if callable(self.script) else self.script
        message = answer if isinstance(answer, AIMessage) else AIMessage(answer)
        return ChatResult(generations=[ChatGeneration(message=message)])

    def prompt(self, number: int = -1) -> str:
        """Return the messages of a request as one text."""
        return "\n".join(str(message.text) for message in self.requests[number])


def fresh_process(
    code: str, *arguments: str, seconds: float = 30.0, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run Python code in a new process, and kill it if it does not exit in time.

    Raises:
        AssertionError: The process did not exit in time.
    """
    command = [sys.executable, "-c", code, *arguments]
    with (
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as err,
        running_process(command, out, err, environment) as process,
    ):
        try:
            exit_code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            exit_code = None
        out.seek(0)
        err.seek(0)
        output = out.read(), err.read()
    assert exit_code is not None, f"did not exit within {seconds} s; wrote {output}"
    return subprocess.CompletedProcess(command, exit_code, *output)


@contextmanager
def running_process(
    command: list[str], out: Any, err: Any, environment: Mapping[str, str]
) -> Iterator[subprocess.Popen[str]]:
    """Start a process in the repository's root, and kill it at the end."""
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
