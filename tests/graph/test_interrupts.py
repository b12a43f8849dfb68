"""A tool that asks the user pauses the run, and its step does not fail."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from casewright.tools import CallContext
from tests.graph.helpers import QUESTION, Arguments, graph_of, tool

CONFIG: Any = {"configurable": {"thread_id": "one"}}
MODES = pytest.mark.parametrize("mode", ["sync", "async"])


def run(mode: str, graph: Any, inputs: Any) -> Any:
    if mode == "sync":
        return graph.invoke(inputs, CONFIG)
    return asyncio.run(graph.ainvoke(inputs, CONFIG))


def graph_and_calls(plan: str) -> tuple[Any, Counter[str], list[str]]:
    calls: Counter[str] = Counter()
    keys: list[str] = []

    def counted(arguments: Arguments, context: CallContext) -> str:
        calls[context.step] += 1
        time.sleep(0.1)
        return f"{context.step} of {arguments.get('a', 'nothing')}"

    def asks(arguments: Arguments, context: CallContext) -> str:
        keys.append(context.key)
        return str(interrupt({"step": context.step, "ask": "which one?"}))

    tools = [tool("counted", counted), tool("asks", asks)]
    return graph_of(tools, plan, checkpointer=InMemorySaver()), calls, keys


@MODES
def test_interrupt_pauses_the_run_once_and_the_reply_is_the_result(
    mode: str,
) -> None:
    graph, calls, keys = graph_and_calls(
        "s1 = counted()\ns2 = asks(a=s1.value)\ns3 = counted()\ns4 = counted(a=s2.value)"
    )
    paused = run(mode, graph, {"question": QUESTION})
    assert "answer" not in paused
    assert [pause.value["step"] for pause in paused["__interrupt__"]] == ["s2"]
    assert graph.get_state(CONFIG).next == ("execute",)
    state = run(mode, graph, Command(resume="the red one"))
    steps = {step["step"]: step for step in state["answer"]["steps"]}
    assert [step["status"] for step in steps.values()] == ["done"] * 4
    assert steps["s2"]["rows"] == [{"value": "the red one"}]
    assert steps["s4"]["rows"] == [{"value": "s4 of the red one"}]
    assert calls == {"s1": 1, "s3": 1, "s4": 1}, "finished steps were called again"
    assert len(keys) == 2
    assert len(set(keys)) == 1, "the call key changed over the pause"


@MODES
def test_steps_independent_of_an_interrupt_finish_before_the_run_pauses(mode: str) -> None:
    graph, calls, _ = graph_and_calls("s1 = asks()\ns2 = counted()\ns3 = counted(a=s2.value)")
    run(mode, graph, {"question": QUESTION})
    run(mode, graph, Command(resume="blue"))
    assert calls == {"s2": 1, "s3": 1}


@MODES
def test_two_interrupts_can_be_answered_one_after_the_other(mode: str) -> None:
    graph, _, _ = graph_and_calls("s1 = asks()\ns2 = asks()\ns3 = counted(a=s1.value, b=s2.value)")
    state = run(mode, graph, {"question": QUESTION})
    paused_steps = []
    while "answer" not in state:
        pause = state["__interrupt__"][0]
        paused_steps.append(pause.value["step"])
        assert len(paused_steps) <= 2, "the same question is asked again"
        state = run(mode, graph, Command(resume={pause.id: f"answer to {pause.value['step']}"}))
    steps = {step["step"]: step for step in state["answer"]["steps"]}
    assert steps["s1"]["rows"] == [{"value": "answer to s1"}]
    assert steps["s2"]["rows"] == [{"value": "answer to s2"}]


@MODES
def test_two_interrupts_are_both_shown_and_can_be_answered_together(mode: str) -> None:
    graph, _, _ = graph_and_calls("s1 = asks()\ns2 = asks()\ns3 = counted(a=s1.value)")
    paused = run(mode, graph, {"question": QUESTION})["__interrupt__"]
    assert sorted(pause.value["step"] for pause in paused) == ["s1", "s2"]
    resume = {pause.id: f"answer to {pause.value['step']}" for pause in paused}
    steps = run(mode, graph, Command(resume=resume))["answer"]["steps"]
    assert [step["rows"] for step in steps[:2]] == [
        [{"value": "answer to s1"}],
        [{"value": "answer to s2"}],
    ]


@MODES
def test_single_open_interrupt_accepts_a_reply_without_its_id(
    mode: str,
) -> None:
    graph, _, _ = graph_and_calls("s1 = asks()\ns2 = asks(a=s1.value)\ns3 = counted(a=s2.value)")
    run(mode, graph, {"question": QUESTION})
    run(mode, graph, Command(resume="one"))
    steps = run(mode, graph, Command(resume="two"))["answer"]["steps"]
    assert [step["rows"][0]["value"] for step in steps] == ["one", "two", "s3 of two"]
