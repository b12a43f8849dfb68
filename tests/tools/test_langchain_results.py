"""A LangChain tool returns rows, no rows, or an error."""

from __future__ import annotations

import asyncio
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, ToolException, tool

from casewright.errors import ToolError
from casewright.tools import CallContext, rows, tool_from_langchain


def run_tool(lc_tool: BaseTool, arguments: dict[str, Any]) -> Any:
    spec = tool_from_langchain(lc_tool)
    assert spec.run is not None
    return spec.run(arguments, CallContext(key="run:s1"))


@pytest.mark.parametrize("handler", [True, "Sorry, that failed.", lambda error: "Sorry."])
def test_error_that_langchain_handles_as_text_raises_tool_error(handler: Any) -> None:
    def fail(query: str) -> str:
        raise ToolException("no such note")

    lc_tool = StructuredTool.from_function(
        fail, name="fail", description="d", handle_tool_error=handler
    )
    with pytest.raises(ToolError, match="fail"):
        run_tool(lc_tool, {"query": "tea"})


def test_unhandled_error_of_a_langchain_tool_is_raised_unchanged() -> None:
    def fail(query: str) -> str:
        raise ToolException("no such note")

    lc_tool = StructuredTool.from_function(fail, name="fail", description="d")
    with pytest.raises(ToolException, match="no such note"):
        run_tool(lc_tool, {"query": "tea"})


def test_artifact_of_a_langchain_tool_is_its_result() -> None:
    @tool(response_format="content_and_artifact")
    def find(query: str) -> tuple[str, list[dict[str, str]]]:
        """Finds."""
        return "two notes", [{"title": "a"}, {"title": "b"}]

    assert run_tool(find, {"query": "tea"}) == [{"title": "a"}, {"title": "b"}]


def test_mappings_of_a_langchain_tool_become_rows_unchanged() -> None:
    @tool
    def find(query: str) -> list[dict[str, Any]]:
        """Finds."""
        return [{"title": query, "year": 1999}]

    spec = tool_from_langchain(find, results=("title", "year"))
    assert rows(spec, run_tool(find, {"query": "tea"})) == [{"title": "tea", "year": 1999}]


@pytest.mark.parametrize("results", [("evidence",), ("title", "year")])
@pytest.mark.parametrize("empty", [None, [], "", {}], ids=repr)
def test_langchain_tool_that_returns_nothing_has_no_rows(
    empty: Any, results: tuple[str, ...]
) -> None:
    @tool
    def find(query: str) -> Any:
        """Finds."""
        return empty

    spec = tool_from_langchain(find, results=results)
    assert rows(spec, run_tool(find, {"query": "tea"})) == []


def test_dates_and_decimals_of_a_langchain_tool_become_text() -> None:
    @tool
    def find(query: str) -> list[dict[str, Any]]:
        """Finds."""
        return [{"title": date(2024, 2, 29), "price": {"euros": Decimal("12.50")}}]

    @tool
    async def find_later(query: str) -> list[dict[str, Any]]:
        """Finds."""
        return [{"title": date(2024, 2, 29), "price": {"euros": Decimal("12.50")}}]

    expected = [{"title": "2024-02-29", "price": {"euros": "12.50"}}]
    plain = tool_from_langchain(find, results=("title", "price"))
    later = tool_from_langchain(find_later, results=("title", "price"))
    assert rows(plain, run_tool(find, {"query": "tea"})) == expected
    assert later.run_async is not None
    assert rows(later, asyncio.run(later.run_async({"query": "tea"}, CallContext()))) == expected


def test_dates_in_an_artifact_of_a_langchain_tool_become_text() -> None:
    @tool(response_format="content_and_artifact")
    def find(query: str) -> tuple[str, list[date]]:
        """Finds."""
        return "one day", [date(2024, 2, 29)]

    result = run_tool(find, {"query": "tea"})
    assert rows(tool_from_langchain(find), result) == [{"evidence": "2024-02-29"}]


def test_langchain_function_receives_its_runnable_config() -> None:
    @tool
    def find(query: str, config: RunnableConfig) -> str:
        """Finds."""
        return str(config["metadata"]["casewright_key"])

    assert run_tool(find, {"query": "tea"}) == "run:s1"
