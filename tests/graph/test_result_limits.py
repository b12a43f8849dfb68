"""Limits of the results and errors that a step keeps."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.tools import StructuredTool, ToolException

from casewright.errors import ToolError
from casewright.tools import tool_from_langchain
from tests.graph.helpers import Ask, graph_of, statuses, step_of, tool, values


def test_step_keeps_no_more_rows_than_the_limit(ask: Ask) -> None:
    tools = [tool("t", lambda *_: [str(n) for n in range(500)])]
    answer = ask(graph_of(tools, "s1 = t()\ns2 = t(a=s1[6].value)\ns3 = t(a=s1[7].value)", rows=7))
    assert values(answer)["s1"] == list("0123456")
    assert statuses(answer) == {"s1": "done", "s2": "done", "s3": "skipped"}


def test_only_texts_beyond_the_character_limit_are_cut_and_marked(ask: Ask) -> None:
    row = {"value": "x" * 101, "other": "y" * 100, "source": "z" * 500}
    tools = [tool("t", lambda *_: row, results=("value", "other"))]
    answer = ask(graph_of(tools, "s1 = t()", characters=100))
    cut_row = step_of(answer, "s1")["rows"][0]
    assert cut_row == {"value": "x" * 100 + " …", "other": "y" * 100, "source": "z" * 100 + " …"}


@pytest.mark.parametrize(
    "value",
    [["x" * 50_000], {"deep": {"deeper": "x" * 50_000}}],
    ids=["text in a list", "text in a mapping"],
)
def test_nested_texts_are_cut_to_the_character_limit(ask: Ask, value: Any) -> None:
    tools = [tool("t", lambda *_: {"value": value})]
    answer = ask(graph_of(tools, "s1 = t()", characters=100))
    assert len(json.dumps(answer.to_json())) < 5_000


def test_next_step_gets_the_cut_result(ask: Ask) -> None:
    size = tool("size", lambda args, _: {"value": len(args["a"])})
    tools = [tool("t", lambda *_: "x" * 500), size]
    answer = ask(graph_of(tools, "s1 = t()\ns2 = size(a=s1.value)", characters=100))
    assert values(answer)["s2"] == [102]


@pytest.mark.parametrize("error", [ValueError, ToolError])
def test_error_of_a_step_is_one_short_line_without_secrets(ask: Ask, error: Any) -> None:
    def fail(arguments: Any, context: Any) -> None:
        raise error("refused\nwith token=sk-abcdefgh1234\n" + "x" * 50_000)

    message = step_of(ask(graph_of([tool("t", fail)], "s1 = t()")), "s1")["error"]
    assert "refused" in message
    assert len(message) < 2_000
    assert "\n" not in message
    assert "abcdefgh1234" not in message


def test_error_text_of_a_langchain_tool_contains_no_secrets(ask: Ask) -> None:
    def fail(query: str) -> str:
        raise ToolException("refused with token=sk-abcdefgh1234")

    langchain_tool = StructuredTool.from_function(
        fail, name="fails", description="Fails.", handle_tool_error=True
    )
    answer = ask(graph_of([tool_from_langchain(langchain_tool)], "s1 = fails(query=question)"))
    assert statuses(answer) == {"s1": "failed"}
    assert "refused" in answer.steps[0]["error"]
    assert "abcdefgh1234" not in json.dumps(answer.to_json())


def test_step_fails_and_names_the_fields_when_no_result_field_is_declared(ask: Ask) -> None:
    answer = ask(graph_of([tool("t", lambda *_: {"price": 3})], "s1 = t()"))
    assert statuses(answer) == {"s1": "failed"}
    assert "['price']" in answer.steps[0]["error"]


def test_result_leaves_out_undeclared_fields_and_sets_missing_ones_to_null(ask: Ask) -> None:
    tools = [tool("t", lambda *_: {"value": 1, "extra": 2}, results=("value", "other"))]
    answer = ask(graph_of(tools, "s1 = t()\ns2 = t(a=s1.other)"))
    assert step_of(answer, "s1")["rows"] == [{"value": 1, "other": None}]
    assert step_of(answer, "s2")["error"] == "It needs s1.other, which t left empty."
