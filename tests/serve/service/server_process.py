"""A service over tools of the tests', in a process of its own: ``python -m … '{"retain": …}'``.

Its planner takes the plan from the question itself: what stands after ``plan:``, ``;`` for a new
line; any other question is one quick step. Its tools leave lines in the file that LOG names.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.types import interrupt

from casewright.errors import StoreUnavailableError
from casewright.graph import ChatGenerator, ExtractiveGenerator, Generator
from casewright.planner import PlanRequest, PlanResult, parse_plan
from casewright.serve.service.answers import Answers
from casewright.serve.service.app import create_app
from casewright.serve.service.options import Parts, ServiceOptions
from casewright.serve.service.server import listening, run
from casewright.tools import CallContext, Toolbox, ToolSpec
from tests.graph.helpers import tool
from tests.support.encoders import HashingEncoder

Given = Mapping[str, Any]


class QuestionPlanner:
    name = "question"

    def plan(self, request: PlanRequest) -> PlanResult:
        _, _, text = request.question.partition("plan:")
        plan = parse_plan(text.strip().replace(";", "\n") or "s1 = quick(a=question)")
        return PlanResult(plan, self.name)

    async def aplan(self, request: PlanRequest) -> PlanResult:
        return self.plan(request)


def tools(log: Path) -> list[ToolSpec]:
    def told(what: str, context: CallContext) -> None:
        with log.open("a") as file:
            file.write(f"{what} {context.step} {context.scope['tenant']} {os.getpid()}\n")

    def quick(given: Given, context: CallContext) -> list[dict[str, str]]:
        told("quick", context)
        whose = " ".join(context.scope[field] for field in sorted(context.scope, reverse=True))
        return [{"value": f"found for {whose}: {given.get('a', '')}"}]

    async def slow(given: Given, context: CallContext) -> str:
        told("slow", context)
        try:
            await asyncio.sleep(float(given.get("b", 1)))
        except asyncio.CancelledError:
            told("cancelled", context)
            raise
        told("slept", context)
        return "slept"

    def blocking(given: Given, context: CallContext) -> str:
        told("blocking", context)
        time.sleep(float(given.get("b", 1)))
        return "woke"

    def broken(given: Given, context: CallContext) -> str:
        return Path("/nowhere/secret folder/file.txt").read_text() + Path("/no/where").read_text()

    def asks(given: Given, context: CallContext) -> str:
        return f"the user says {interrupt(given.get('a', 'which one?'))}"

    return [
        tool("quick", quick),
        tool("slow", None, slow),
        tool("blocking", blocking),
        tool("broken", broken),
        tool("asks", asks),
    ]


class Store:
    """A store that does not answer while there is a file ``down`` beside the log."""

    def __init__(self, down: Path) -> None:
        self._down = down

    def count(self) -> int:
        if self._down.exists():
            raise StoreUnavailableError(f"{self._down} is unavailable")
        return 0


def main() -> None:
    given = json.loads(sys.argv[1])
    chat = given.pop("chat", "")
    if "threads_file" in given:
        given["threads_file"] = Path(given["threads_file"])
    answers = None
    if given.get("retain", "off") != "off":
        answers = Answers(HashingEncoder(), os.environ.get("ANSWERS", ":memory:"))
    toolbox = Toolbox(tools(Path(os.environ["LOG"])))
    generator: Generator = ExtractiveGenerator()
    if chat:
        # Streamed word by word.
        generator = ChatGenerator(GenericFakeChatModel(messages=iter([AIMessage(chat)] * 9)))
    stores: Any = {"one": Store(Path(os.environ["LOG"]).with_name("down"))}
    scopes = given.pop("scopes", {})
    parts = Parts("tests", toolbox, QuestionPlanner(), generator, scopes, stores)
    app = create_app(parts, ServiceOptions(**given), answers)
    run(app, listening("127.0.0.1", 0), shutdown_seconds=20.0, log_level="warning")
    if answers is not None:
        answers.close()


if __name__ == "__main__":
    main()
