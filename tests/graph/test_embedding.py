"""The compiled graph within a parent graph."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from casewright.graph import RunContext
from casewright.tools import CallContext
from tests.graph.helpers import QUESTION, Arguments, graph_of, tool

CONFIG: Any = {"configurable": {"thread_id": "one"}}


class Parent(TypedDict, total=False):
    query: str
    reply: str
    steps: int


class OtherContext(TypedDict, total=False):
    tenant: str


def parent_of(graph: Any, context_schema: Any = None) -> Any:
    """Return a parent graph with other keys, which passes only the question to the graph."""

    def run_blocking(state: Parent) -> Parent:
        answer = graph.invoke({"question": state["query"]})["answer"]
        return {"reply": answer["text"], "steps": len(answer["steps"])}

    async def run_awaiting(state: Parent) -> Parent:
        answer = (await graph.ainvoke({"question": state["query"]}))["answer"]
        return {"reply": answer["text"], "steps": len(answer["steps"])}

    builder: Any = StateGraph(Parent, context_schema=context_schema)
    builder.add_node("look_up", RunnableLambda(run_blocking, run_awaiting))
    builder.add_edge(START, "look_up")
    builder.add_edge("look_up", END)
    return builder.compile(checkpointer=InMemorySaver())


def run(mode: str, graph: Any, inputs: Any, **options: Any) -> Any:
    if mode == "sync":
        return graph.invoke(inputs, CONFIG, **options)
    return asyncio.run(graph.ainvoke(inputs, CONFIG, **options))


MODES = pytest.mark.parametrize("mode", ["sync", "async"])
FIND = tool("find", lambda _, context: f"found by {context.scope.get('customer', 'nobody')}")


def test_graph_has_no_checkpointer_by_default() -> None:
    assert graph_of([FIND], "s1 = find()").checkpointer is None


@MODES
def test_parent_graph_with_other_keys_gets_the_answer_through_a_wrapper(mode: str) -> None:
    parent = parent_of(graph_of([FIND], "s1 = find()\ns2 = find(a=s1.value)"))
    state = run(mode, parent, {"query": QUESTION})
    assert "found by nobody" in state["reply"]
    assert state["steps"] == 2
    assert set(parent.get_state(CONFIG).values) == {"query", "reply", "steps"}


@MODES
def test_run_context_of_the_parent_graph_reaches_the_tools(mode: str) -> None:
    parent = parent_of(graph_of([FIND], "s1 = find()"), RunContext)
    state = run(mode, parent, {"query": QUESTION}, context=RunContext(scope={"customer": "C1"}))
    assert "found by C1" in state["reply"]


@MODES
def test_other_context_type_of_the_parent_graph_is_ignored(mode: str) -> None:
    parent = parent_of(graph_of([FIND], "s1 = find()"), OtherContext)
    state = run(mode, parent, {"query": QUESTION}, context={"tenant": "T1"})
    assert "found by nobody" in state["reply"]


@MODES
def test_parent_checkpointer_keeps_finished_steps_over_an_interrupt(mode: str) -> None:
    calls: Counter[str] = Counter()

    def counted(arguments: Arguments, context: CallContext) -> str:
        calls[context.step] += 1
        return f"value of {context.step}"

    def asks(arguments: Arguments, context: CallContext) -> str:
        return f"the user says {interrupt('which one?')}"

    plan = "s1 = counted()\ns2 = counted()\ns3 = asks(a=s1.value)\ns4 = counted(a=s3.value)"
    parent = parent_of(graph_of([tool("counted", counted), tool("asks", asks)], plan))
    paused = run(mode, parent, {"query": QUESTION})
    assert {pause.value for pause in paused["__interrupt__"]} == {"which one?"}
    assert len({pause.id for pause in paused["__interrupt__"]}) == 1
    assert calls == {"s1": 1, "s2": 1}
    state = run(mode, parent, Command(resume="the red one"))
    assert state["steps"] == 4
    assert "the user says the red one" in state["reply"]
    assert calls == {"s1": 1, "s2": 1, "s4": 1}


@MODES
def test_interrupt_of_a_tool_reaches_the_caller_of_the_parent_under_one_id(mode: str) -> None:
    asks = tool("asks", lambda *_: str(interrupt("which one?")))
    parent = parent_of(graph_of([asks, FIND], "s1 = asks()\ns2 = find(a=s1.value)"))
    paused = run(mode, parent, {"query": QUESTION})
    # LangGraph lists the interrupt for the task and for its node, under the same id.
    assert {pause.id: pause.value for pause in paused["__interrupt__"]} == {
        paused["__interrupt__"][0].id: "which one?"
    }


@MODES
def test_parent_stream_with_subgraphs_contains_the_events_of_the_run(mode: str) -> None:
    parent = parent_of(graph_of([FIND], "s1 = find()"))
    args, options = ({"query": QUESTION}, CONFIG), {"stream_mode": "custom", "subgraphs": True}

    async def collect() -> list[Any]:
        return [event async for event in parent.astream(*args, **options)]

    events = list(parent.stream(*args, **options)) if mode == "sync" else asyncio.run(collect())
    kinds = [event["event"] for _, event in events]
    assert kinds == ["plan", "step_started", "step_ended", "answer"]


@MODES
def test_graph_needs_no_wrapper_in_a_parent_with_the_same_keys(mode: str) -> None:
    class Shared(TypedDict, total=False):
        question: str
        answer: dict[str, Any]

    builder: Any = StateGraph(Shared)
    builder.add_node("casewright", graph_of([FIND], "s1 = find()\ns2 = find(a=s1.value)"))
    builder.add_edge(START, "casewright")
    state = run(mode, builder.compile(checkpointer=InMemorySaver()), {"question": QUESTION})
    assert [step["status"] for step in state["answer"]["steps"]] == ["done", "done"]
