"""Every plan is validated before it runs, also a custom planner's or one edited in the state."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from casewright.errors import InputError, PlanError
from casewright.graph import Answer, Limits, RunContext, build_graph
from casewright.planner import PlanRequest, PlanResult, parse_plan
from casewright.tools import CallContext, Parameter, Toolbox, ToolSpec
from tests.graph.helpers import QUESTION, Arguments, Ask, tool

CONFIG: Any = {"configurable": {"thread_id": "one"}}
#: Invalid plans, each with a part of its error message.
INVALID = {
    "unknown tool": ("s1 = delete_account()", "There is no tool delete_account"),
    "invented identifier": ('s1 = page(page_id="P99")', "page_id may not be the text"),
    "unknown parameter": ("s1 = find(x=question)", "no parameter x"),
    "later step": ("s1 = page(page_id=s2.page_id)\ns2 = find(a=question)", "earlier step"),
    "too many steps": ("s1 = find()\ns2 = find()\ns3 = find()", "at most 2"),
    "absent context": ("s1 = page(page_id=context.page_id)", "The context of this request has no"),
    "no plan": ("find the page", "Call it s1"),
    "no text": (5, "sN = tool"),
}


class UncheckedPlanner:
    """A custom planner that checks nothing."""

    name = "own"

    def __init__(self, text: str) -> None:
        self._text = text

    def plan(self, request: PlanRequest) -> PlanResult:
        return PlanResult(parse_plan(self._text), self.name)

    async def aplan(self, request: PlanRequest) -> PlanResult:
        return self.plan(request)


def graph_with_plan(plan: str, calls: list[str], checkpointer: Any = None) -> Any:
    def find(arguments: Arguments, context: CallContext) -> list[dict[str, str]]:
        calls.append("find")
        return [{"page_id": "P1"}]

    def page(arguments: Arguments, context: CallContext) -> str:
        calls.append("page")
        return "a page"

    tools = [
        tool("find", find, results=("page_id",)),
        ToolSpec("page", "A test's.", (Parameter("page_id"),), ("value",), run=page),
    ]
    return build_graph(
        Toolbox(tools), UncheckedPlanner(plan), limits=Limits(steps=2), checkpointer=checkpointer
    )


def run(ask: Ask, graph: Any, inputs: Any, **options: Any) -> Any:
    if ask.mode == "sync":
        return graph.invoke(inputs, CONFIG, **options)
    return asyncio.run(graph.ainvoke(inputs, CONFIG, **options))


@pytest.mark.parametrize("name", INVALID)
def test_invalid_plan_edited_in_the_state_is_refused_before_any_call(ask: Ask, name: str) -> None:
    text, message = INVALID[name]
    calls: list[str] = []
    graph = graph_with_plan("s1 = find()", calls, InMemorySaver())
    run(ask, graph, {"question": QUESTION}, interrupt_before=["execute"])
    graph.update_state(CONFIG, {"plan": text})
    with pytest.raises(PlanError, match=message):
        run(ask, graph, None)
    assert calls == []


@pytest.mark.parametrize("name", [name for name, (text, _) in INVALID.items() if "s1" in str(text)])
def test_invalid_plan_of_a_custom_planner_is_refused_before_any_call(ask: Ask, name: str) -> None:
    text, message = INVALID[name]
    calls: list[str] = []
    with pytest.raises(PlanError, match=message):
        ask(graph_with_plan(str(text), calls))
    with pytest.raises(PlanError, match=message):
        ask(
            graph_with_plan("s1 = find()", calls),
            context=RunContext(planner=UncheckedPlanner(str(text))),
        )
    assert calls == []


def test_invalid_context_edited_in_the_state_is_refused_before_any_call(ask: Ask) -> None:
    calls: list[str] = []
    graph = graph_with_plan("s1 = find()", calls, InMemorySaver())
    run(ask, graph, {"question": QUESTION}, interrupt_before=["execute"])
    graph.update_state(CONFIG, {"context": "a text"})
    with pytest.raises(InputError, match="context"):
        run(ask, graph, None)
    assert calls == []


def test_valid_plan_edited_in_the_state_is_run(ask: Ask) -> None:
    calls: list[str] = []
    graph = graph_with_plan("s1 = find()", calls, InMemorySaver())
    run(ask, graph, {"question": QUESTION}, interrupt_before=["execute"])
    graph.update_state(CONFIG, {"plan": "s1 = find()\ns2 = page(page_id=s1.page_id)"})
    answer = Answer.from_state(run(ask, graph, None))
    assert [step["status"] for step in answer.steps] == ["done", "done"]
    assert calls == ["find", "page"]
