from __future__ import annotations

import asyncio
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import (
    BaseTool,
    InjectedToolArg,
    StructuredTool,
    Tool,
    tool,
)

from casewright.errors import ToolError
from casewright.tools import CallContext, Source, tool_from_langchain

CONTEXT = CallContext("run", "s1", "run:s1", "q", {"user": "ann", "other": "x"})


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@tool
def search_notes(query: str, limit: int = 3) -> str:
    """Searches the notes."""
    return f"{query}/{limit}"


@tool
def own_notes(query: str, user: Annotated[str, InjectedToolArg]) -> str:
    """Searches the asker's notes."""
    return f"{user}: {query}"


class OwnClass(BaseTool):
    name: str = "own_class"
    description: str = "A class of its own."

    def _run(self, query: str, user: Annotated[str, InjectedToolArg]) -> str:
        return f"{user}: {query}"


def run_tool(lc_tool: BaseTool, arguments: dict[str, Any], **more: Any) -> Any:
    spec = tool_from_langchain(lc_tool, **more)
    assert spec.run is not None
    return spec.run(arguments, CONTEXT)


def test_langchain_tool_keeps_its_name_description_and_arguments() -> None:
    spec = tool_from_langchain(search_notes, sources={"query": ("span",)})
    assert (spec.name, spec.description) == ("search_notes", "Searches the notes.")
    query, limit = spec.parameters
    assert (query.name, query.kind, query.required) == ("query", "string", True)
    assert query.sources == {Source.SPAN}
    assert (limit.name, limit.kind, limit.required) == ("limit", "integer", False)
    assert run_tool(search_notes, {"query": "tea"}) == "tea/3"


def test_langchain_tool_name_that_is_no_identifier_gets_an_alias() -> None:
    lc_tool = StructuredTool.from_function(lambda query: query, name="my-tool", description="d")
    assert tool_from_langchain(lc_tool).name == "my_x2d_tool"
    assert run_tool(lc_tool, {"query": "tea"}) == "tea"


def test_injected_argument_is_hidden_from_plans_and_filled_from_the_scope() -> None:
    spec = tool_from_langchain(own_notes)
    assert [parameter.name for parameter in spec.parameters] == ["query"]
    assert run_tool(own_notes, {"query": "tea"}) == "ann: tea"


def test_a_plan_cannot_write_an_injected_argument() -> None:
    assert run_tool(own_notes, {"query": "tea", "user": "bob"}) == "ann: tea"


def test_injected_argument_of_a_tool_class_without_schema_is_filled() -> None:
    assert run_tool(OwnClass(), {"query": "tea"}) == "ann: tea"


def test_langchain_single_input_tool_takes_tool_input() -> None:
    lc_tool = Tool(name="echo", description="Echoes.", func=lambda text: f"<{text}>")
    assert [parameter.name for parameter in tool_from_langchain(lc_tool).parameters] == [
        "tool_input"
    ]
    assert run_tool(lc_tool, {"tool_input": "tea"}) == "<tea>"


def test_langchain_tool_may_declare_its_arguments_as_json_schema() -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "Where."}},
        "required": ["city"],
    }
    lc_tool = StructuredTool(
        name="sky", description="Looks up.", args_schema=schema, func=lambda city: f"sky of {city}"
    )
    (city,) = tool_from_langchain(lc_tool).parameters
    assert (city.name, city.kind, city.description, city.required) == (
        "city",
        "string",
        "Where.",
        True,
    )
    assert run_tool(lc_tool, {"city": "Oslo"}) == "sky of Oslo"


def test_literal_argument_of_a_langchain_tool_gives_choices() -> None:
    @tool
    def paint(colour: Literal["red", "blue"] | None = None) -> str:
        """Paints."""
        return str(colour)

    assert tool_from_langchain(paint).parameters[0].choices == ("red", "blue")


def test_enum_argument_of_a_langchain_tool_gives_choices() -> None:
    @tool
    def paint(colour: Colour) -> str:
        """Paints."""
        return colour.value

    (colour,) = tool_from_langchain(paint).parameters
    assert (colour.choices, colour.sources) == (("red", "blue"), frozenset())


def test_schema_definition_that_refers_to_itself_has_kind_any() -> None:
    schema = {
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/Tree"}},
        "$defs": {"Tree": {"anyOf": [{"$ref": "#/$defs/Tree"}, {"type": "null"}]}},
    }
    lc_tool = StructuredTool(name="t", description="d", args_schema=schema, func=lambda tree: tree)
    assert tool_from_langchain(lc_tool).parameters[0].kind == "any"


def test_async_langchain_tool_runs_on_the_event_loop() -> None:
    async def answer(query: str) -> str:
        await asyncio.sleep(0)
        return query.upper()

    lc_tool = StructuredTool.from_function(coroutine=answer, name="answer", description="d")
    spec = tool_from_langchain(lc_tool)
    assert spec.run is None

    async def call() -> Any:
        assert spec.run_async is not None
        return await spec.run_async({"query": "tea"}, CONTEXT)

    assert asyncio.run(call()) == "TEA"


def test_sync_langchain_tool_has_no_async_run() -> None:
    spec = tool_from_langchain(search_notes)
    assert spec.run is not None
    assert spec.run_async is None


def test_langchain_tool_receives_key_and_step_in_its_config() -> None:
    @tool
    def keyed(query: str, config: RunnableConfig) -> str:
        """Tells its key."""
        values = config["configurable"]
        return f"{values['casewright_key']} {values['casewright_step']}"

    assert [p.name for p in tool_from_langchain(keyed).parameters] == ["query"]
    assert run_tool(keyed, {"query": "tea"}) == "run:s1 s1"


def test_sources_for_an_injected_argument_are_refused() -> None:
    with pytest.raises(ToolError, match="user"):
        tool_from_langchain(own_notes, sources={"user": ("literal",)})
