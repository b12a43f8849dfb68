"""What comes back from a LangChain tool: rows, nothing, or an error."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.tools import BaseTool, StructuredTool, ToolException, tool

from casewright.errors import ToolError
from casewright.tools import CallContext, rows, tool_from_langchain


def run(made: BaseTool, arguments: dict[str, Any]) -> Any:
    spec = tool_from_langchain(made)
    assert spec.run is not None
    return spec.run(arguments, CallContext(key="run:s1"))


@pytest.mark.parametrize("handler", [True, "Sorry, that failed.", lambda error: "Sorry."])
def test_an_error_handled_as_text_counts_as_an_error(handler: Any) -> None:
    def fail(query: str) -> str:
        raise ToolException("no such note")

    made = StructuredTool.from_function(
        fail, name="fail", description="d", handle_tool_error=handler
    )
    with pytest.raises(ToolError, match="fail"):
        run(made, {"query": "tea"})


def test_an_unhandled_error_is_raised() -> None:
    def fail(query: str) -> str:
        raise ToolException("no such note")

    made = StructuredTool.from_function(fail, name="fail", description="d")
    with pytest.raises(ToolException, match="no such note"):
        run(made, {"query": "tea"})


def test_an_artifact_is_what_the_tool_returned() -> None:
    @tool(response_format="content_and_artifact")
    def find(query: str) -> tuple[str, list[dict[str, str]]]:
        """Finds."""
        return "two notes", [{"title": "a"}, {"title": "b"}]

    assert run(find, {"query": "tea"}) == [{"title": "a"}, {"title": "b"}]


def test_mappings_survive_the_way_through_a_tool_message() -> None:
    @tool
    def find(query: str) -> list[dict[str, Any]]:
        """Finds."""
        return [{"title": query, "year": 1999}]

    spec = tool_from_langchain(find, results=("title", "year"))
    assert rows(spec, run(find, {"query": "tea"})) == [{"title": "tea", "year": 1999}]


@pytest.mark.parametrize("results", [("evidence",), ("title", "year")])
@pytest.mark.parametrize("nothing", [None, [], "", {}], ids=repr)
def test_a_tool_that_returns_nothing_has_no_rows(nothing: Any, results: tuple[str, ...]) -> None:
    @tool
    def find(query: str) -> Any:
        """Finds."""
        return nothing

    spec = tool_from_langchain(find, results=results)
    assert rows(spec, run(find, {"query": "tea"})) == []
