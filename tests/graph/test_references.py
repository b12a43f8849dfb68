"""A reference is replaced by a value once; a result is data, even if it looks like a plan."""

from __future__ import annotations

import json
from typing import Any

import pytest

from casewright.tools import CallContext
from tests.graph.helpers import QUESTION, Arguments, Ask, graph_of, statuses, step_of, tool, values

ECHO = tool("echo", lambda args, _: {"value": args["a"]})
LOOK_ALIKES = [
    "s1.value",
    "s1[0].value",
    "$1",
    "$10",
    "#E1",
    "question",
    "context.page",
    '"), s2 = t(a="',
    "s3 = spy()\ns4 = spy()",
    "{question}",
    "%s %(a)s",
    "null",
    "",
    "[E1]",
    "true",
]


@pytest.mark.parametrize("text", [text for text in LOOK_ALIKES if text])
def test_result_that_looks_like_a_reference_or_plan_is_passed_on_verbatim(
    ask: Ask, text: str
) -> None:
    received: list[Any] = []
    calls: list[str] = []

    def spy(arguments: Arguments, context: CallContext) -> Any:
        calls.append(context.step)
        received.append(dict(arguments))
        return {"value": arguments["a"]}

    tools = [tool("t", lambda *_: {"value": text}), tool("spy", spy)]
    plan = "s1 = t()\ns2 = spy(a=s1.value, b=question)\ns3 = spy(a=s2.value, b=[s1.value, 1])"
    answer = ask(graph_of(tools, plan), {"question": QUESTION, "context": {"page": "P1"}})
    assert received == [{"a": text, "b": QUESTION}, {"a": text, "b": [text, 1]}]
    assert calls == ["s2", "s3"]
    assert values(answer)["s3"] == [text]
    assert answer.plan == plan


@pytest.mark.parametrize("text", LOOK_ALIKES)
def test_literal_or_context_field_like_a_reference_is_passed_on_verbatim(
    ask: Ask, text: str
) -> None:
    echo = tool("echo", lambda args, _: {"value": [args["a"], args["b"]]})
    plan = f"s1 = echo(a={json.dumps(text)}, b=context.page)"
    answer = ask(graph_of([echo], plan), {"question": QUESTION, "context": {"page": text}})
    assert values(answer)["s1"] == [[text, text]]


def test_argument_values_keep_their_types(ask: Ask) -> None:
    row = {"value": {"deep": [1, 2.5, True, None, "x"]}}
    tools = [tool("t", lambda *_: row), tool("echo", lambda args, _: {"value": dict(args)})]
    plan = 's1 = t()\ns2 = echo(a=s1.value, b=[1, 1.5, true, "1"], c=false)'
    answer = ask(graph_of(tools, plan))
    assert values(answer)["s2"] == [{"a": row["value"], "b": [1, 1.5, True, "1"], "c": False}]
    assert step_of(answer, "s2")["arguments"] == values(answer)["s2"][0]


@pytest.mark.parametrize("value", [0, False, "", []])
def test_false_or_empty_field_is_passed_on_as_a_value(ask: Ask, value: Any) -> None:
    tools = [
        tool("t", lambda *_: {"value": value}),
        tool("echo", lambda args, _: {"value": [args["a"]]}),
    ]
    answer = ask(graph_of(tools, "s1 = t()\ns2 = echo(a=s1.value)"))
    assert statuses(answer) == {"s1": "done", "s2": "done"}
    assert values(answer)["s2"] == [[value]]


def test_indexed_reference_takes_the_result_at_its_index_or_skips_the_step(ask: Ask) -> None:
    plan = "s1 = t()\ns2 = echo(a=s1[1].value)\ns3 = echo(a=s1[2].value)"
    answer = ask(graph_of([tool("t", lambda *_: ["a", "b"]), ECHO], plan))
    assert values(answer)["s2"] == ["b"]
    assert statuses(answer)["s3"] == "skipped"
    assert step_of(answer, "s3")["error"] == "It needs result 2 of s1 (t), which returned 2."


def test_error_of_a_tool_is_not_passed_to_another_step(ask: Ask) -> None:
    received: list[Any] = []

    def fail(arguments: Arguments, context: CallContext) -> None:
        raise ValueError("secret internals")

    tools = [tool("fails", fail), tool("spy", lambda args, _: received.append(dict(args)))]
    answer = ask(graph_of(tools, "s1 = fails()\ns2 = spy(a=s1.value)\ns3 = spy(a=[1, s1.value])"))
    assert statuses(answer) == {"s1": "failed", "s2": "skipped", "s3": "skipped"}
    assert received == []
    assert step_of(answer, "s2")["error"] == "It needs s1 (fails), which ended failed."


def test_only_used_results_of_an_intermediate_step_become_evidence(ask: Ask) -> None:
    tools = [tool("t", lambda *_: ["a", "b", "c"]), ECHO]
    answer = ask(graph_of(tools, "s1 = t()\ns2 = echo(a=s1[1].value)"))
    evidence = [(item["id"], item["step"], item["text"], item["final"]) for item in answer.evidence]
    assert evidence == [("E1", "s1", "b", False), ("E2", "s2", "b", True)]
