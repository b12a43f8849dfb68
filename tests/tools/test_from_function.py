from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum
from typing import Any, Literal

import pytest

from casewright.errors import ToolError
from casewright.tools import CallContext, Source, ToolExample, tool_from_function

CONTEXT = CallContext("run", "s2", "run:s2", "why?", {"customer": "c1"})


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


def forecast(city: str, days: int = 3) -> str:
    """Tells the weather
    of a city.

    Not for the planner.
    """
    return f"{city} {days}"


async def slow(city: str, call: CallContext) -> str:
    """Tells the weather slowly."""
    await asyncio.sleep(0)
    return f"{city} for {call.scope['customer']} at {call.step}"


def owned(call: CallContext, thing: str) -> str:
    """Finds what the asker owns."""
    return f"{call.scope['customer']}'s {thing}"


def test_tool_takes_name_description_parameters_and_defaults_from_its_function() -> None:
    tool = tool_from_function(forecast)
    assert (tool.name, tool.description) == ("forecast", "Tells the weather of a city.")
    city, days = tool.parameters
    assert (city.name, city.kind, city.required) == ("city", "string", True)
    assert (days.name, days.kind, days.required) == ("days", "integer", False)
    assert tool.results == ("evidence",)


def test_explicit_settings_of_a_tool_override_those_of_the_function() -> None:
    example = ToolExample("q", "s1 = sky_x20_report()")
    tool = tool_from_function(
        forecast,
        name="sky report",
        description="Looks up.",
        results=["sky"],
        sources={"city": ("span", "step")},
        example=example,
    )
    assert tool.name == "sky_x20_report"
    assert (tool.description, tool.results, tool.example) == ("Looks up.", ("sky",), example)
    assert tool.parameters[0].sources == {Source.SPAN, Source.STEP}


def test_sync_function_tool_is_called_with_keyword_arguments() -> None:
    tool = tool_from_function(forecast)
    assert tool.run is not None
    assert tool.run_async is None
    assert tool.run({"city": "Oslo"}, CONTEXT) == "Oslo 3"
    assert tool.run({"city": "Oslo", "days": 1}, CONTEXT) == "Oslo 1"


def test_async_function_tool_has_only_an_async_run() -> None:
    tool = tool_from_function(slow)
    assert tool.run is None
    assert tool.run_async is not None

    async def call() -> Any:
        assert tool.run_async is not None
        return await tool.run_async({"city": "Oslo"}, CONTEXT)

    assert asyncio.run(call()) == "Oslo for c1 at s2"


def test_call_context_is_passed_to_the_function_and_hidden_from_plans() -> None:
    tool = tool_from_function(owned)
    assert tool.run is not None
    assert [parameter.name for parameter in tool.parameters] == ["thing"]
    assert tool.run({"thing": "kettle"}, CONTEXT) == "c1's kettle"


def test_no_argument_of_a_plan_can_replace_the_call_context() -> None:
    tool = tool_from_function(owned)
    assert tool.run is not None
    forged = CallContext(scope={"customer": "c2"})
    assert tool.run({"thing": "kettle", "call": forged}, CONTEXT) == "c1's kettle"


@pytest.mark.parametrize(
    "annotation",
    [Literal["red", "blue"], Literal["red", "blue"] | None, Colour, Colour | None],
    ids=["literal", "optional literal", "enum", "optional enum"],
)
def test_literal_or_enum_annotation_allows_only_its_choices(annotation: Any) -> None:
    def paint(colour: Any) -> str:
        return str(colour)

    paint.__annotations__["colour"] = annotation
    (colour,) = tool_from_function(paint).parameters
    assert colour.choices == ("red", "blue")
    assert colour.sources == frozenset()


def test_an_optional_parameter_has_the_type_of_its_value() -> None:
    def search(query: str, months: int | None = None) -> str:
        return query

    months = tool_from_function(search).parameters[1]
    assert (months.kind, months.required) == ("integer", False)


@pytest.mark.parametrize(
    ("annotation", "kind"),
    [(str, "string"), (float, "number"), (bool, "boolean"), (list[str], "array"), (Any, "any")],
)
def test_a_parameter_has_the_json_type_of_its_annotation(annotation: Any, kind: str) -> None:
    def tool(value: Any) -> str:
        return str(value)

    tool.__annotations__["value"] = annotation
    assert tool_from_function(tool).parameters[0].kind == kind


@pytest.mark.parametrize("annotation", [object(), type("Own", (), {}), Callable[[int], int]])
def test_parameter_type_that_json_cannot_hold_raises_tool_error(annotation: Any) -> None:
    def tool(value: Any) -> str:
        return str(value)

    tool.__annotations__["value"] = annotation
    with pytest.raises(ToolError, match="value"):
        tool_from_function(tool)


def test_functions_with_variable_arguments_are_refused() -> None:
    def several(*names: str) -> str:
        return "".join(names)

    def named(**names: str) -> str:
        return "".join(names)

    for function in (several, named):
        with pytest.raises(ToolError, match="names"):
            tool_from_function(function)


def test_sources_with_unknown_parameters_or_names_are_refused() -> None:
    with pytest.raises(ToolError, match="town"):
        tool_from_function(forecast, sources={"town": ("span",)})
    with pytest.raises(ToolError, match="guess"):
        tool_from_function(forecast, sources={"city": ("guess",)})
