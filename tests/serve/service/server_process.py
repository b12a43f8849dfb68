"""A service with the tests' tools, in a process of its own.

Its planner reads the plan from the question: from ``plan:``, or after failures from ``mended by:``;
``;`` starts a new line. For another question, it plans one step with the tool ``quick``. The tools
write a line for each event to the file that the variable LOG names.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.types import interrupt

from casewright.errors import StoreUnavailableError
from casewright.graph import (
    ChatGenerator,
    ExtractiveGenerator,
    Generator,
    RunContext,
    build_graph,
)
from casewright.graph.feedback import FeedbackLimits, FeedbackSearch
from casewright.planner import PlanRequest, PlanResult, parse_plan
from casewright.serve.service.answers import AnswerStore
from casewright.serve.service.app import create_app
from casewright.serve.service.options import Parts, ServiceOptions
from casewright.serve.service.server import listening_socket, run
from casewright.serve.settings.tokens import Grant
from casewright.stores import Case, CaseSchema, CaseStore, text_facet
from casewright.stores.feedback import OfflineJudge
from casewright.tools import CallContext, Toolbox, ToolSpec, tool_from_store
from tests.graph.helpers import tool
from tests.support.encoders import HashingEncoder

Arguments = Mapping[str, Any]
#: Text that runs scripts and changes a page which inserts it as HTML.
HOSTILE = (
    "<img src=x onerror=alert(1)><script>alert(2)</script><style>body{display:none}</style>"
    "</div><a href='javascript:alert(3)'>[E7]</a> & \u202e<b>"
)


class QuestionPlanner:
    name = "question"

    def plan(self, request: PlanRequest) -> PlanResult:
        _, _, text = request.question.partition("plan:")
        first, _, mended = text.partition("mended by:")
        text = mended if request.failures else first
        plan = parse_plan(text.strip().replace(";", "\n") or "s1 = quick(a=question)")
        return PlanResult(plan, self.name)

    async def aplan(self, request: PlanRequest) -> PlanResult:
        return self.plan(request)


def tools(log: Path) -> list[ToolSpec]:
    def log_call(event: str, context: CallContext) -> None:
        with log.open("a") as file:
            file.write(f"{event} {context.step} {context.scope['tenant']} {os.getpid()}\n")

    def quick(arguments: Arguments, context: CallContext) -> list[dict[str, str]]:
        log_call("quick", context)
        user = " ".join(context.scope[field] for field in sorted(context.scope, reverse=True))
        return [{"value": f"found for {user}: {arguments.get('a', '')}"}]

    async def slow(arguments: Arguments, context: CallContext) -> str:
        log_call("slow", context)
        try:
            await asyncio.sleep(float(arguments.get("b", 1)))
        except asyncio.CancelledError:
            log_call("cancelled", context)
            raise
        log_call("slept", context)
        return "slept"

    def blocking(arguments: Arguments, context: CallContext) -> str:
        log_call("blocking", context)
        time.sleep(float(arguments.get("b", 1)))
        return "woke"

    def broken(arguments: Arguments, context: CallContext) -> str:
        return Path("/nowhere/secret folder/file.txt").read_text() + Path("/no/where").read_text()

    def asks(arguments: Arguments, context: CallContext) -> str:
        return f"the user says {interrupt(arguments.get('a', 'which one?'))}"

    def twice(arguments: Arguments, context: CallContext) -> str:
        return f"the user says {interrupt('the first?')}, then {interrupt('the second?')}"

    def hostile(arguments: Arguments, context: CallContext) -> list[dict[str, str]]:
        return [{"value": HOSTILE, "source": "<b onclick=alert(4)>source</b>"}]

    def halved(arguments: Arguments, context: CallContext) -> str:
        context.report({"seen": "half of a pair: \ud83d"})
        return "whole"

    return [
        tool("quick", quick),
        tool("slow", None, slow),
        tool("blocking", blocking),
        tool("broken", broken),
        tool("asks", asks),
        tool("twice", twice),
        tool("hostile", hostile),
        tool("halved", halved),
        nested_tool(quick),
        feedback_tool(),
    ]


def nested_tool(quick: Callable[[Arguments, CallContext], Any]) -> ToolSpec:
    """Return a tool that asks its own graph, whose plan waits for approval."""
    toolbox = Toolbox([tool("quick", quick)])
    graph = build_graph(toolbox, QuestionPlanner(), approve="always")

    async def nested(arguments: Arguments, context: CallContext) -> str:
        inputs: Any = {"question": str(arguments.get("a", "")), "context": {}, "history": []}
        state = await graph.ainvoke(inputs, context=RunContext(scope=context.scope))
        return str(state["answer"]["text"])

    return tool("nested", None, nested)


def feedback_tool() -> ToolSpec:
    """Return a search with relevance feedback: the first hit has the name that finds the second."""
    store = CaseStore(CaseSchema("films", (text_facet("text", HashingEncoder()),)))
    store.add(
        Case({"text": text}, text)
        for text in (
            "Jackass Mail is a comedy film directed by Norman McLeod.",
            "Norman McLeod was born in Grayling, Michigan.",
            "Grayling is a city in Michigan on a river.",
            "A lathe wants oil every week.",
        )
    )
    search = FeedbackSearch(store, OfflineJudge(), limits=FeedbackLimits(first=1, more=1))
    return tool_from_store(store, name="films", description="Looks films up.", search=search)


class Store:
    """A store that is unavailable while the file ``down`` exists."""

    def __init__(self, down: Path) -> None:
        self._down = down

    def count(self) -> int:
        if self._down.exists():
            raise StoreUnavailableError(f"{self._down} is unavailable")
        return 0


def serve_forked(
    options: dict[str, Any], variables: Mapping[str, str], limits: tuple[int, int], errors: Path
) -> None:
    """Serve in a forked process, with the environment and limits that a started one inherits."""
    os.environ.update(variables)
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    with errors.open("w") as file:
        os.dup2(file.fileno(), sys.stderr.fileno())
    options["tokens"] = {token: Grant(tenant) for token, tenant in options["tokens"].items()}
    chat = options.pop("chat", "")
    server_options = options.pop("serving", {})
    port = options.pop("port", 0)
    for option in {"threads_file", "corrections_file", "plans_folder"} & options.keys():
        options[option] = Path(options[option])
    answers = None
    if options.get("retain", "off") != "off":
        answers = AnswerStore(HashingEncoder(), os.environ.get("ANSWERS", ":memory:"))
    toolbox = Toolbox(tools(Path(os.environ["LOG"])))
    generator: Generator = ExtractiveGenerator()
    if chat:
        # This model streams its message word by word.
        generator = ChatGenerator(GenericFakeChatModel(messages=iter([AIMessage(chat)] * 9)))
    stores: Any = {"one": Store(Path(os.environ["LOG"]).with_name("down"))}
    scopes = options.pop("scopes", {})
    parts = Parts("tests", toolbox, QuestionPlanner(), generator, scopes, stores)
    app = create_app(parts, ServiceOptions(**options), answers)
    server_options = {"shutdown_seconds": 20.0, "log_level": "warning", **server_options}
    run(app, listening_socket("127.0.0.1", port, share=port > 0), **server_options)
    if answers is not None:
        answers.close()
