from __future__ import annotations

from typing import Any

import pytest

from casewright.errors import InputError
from casewright.tools import Source, ToolExample, tool_from_record

RECORD: dict[str, Any] = {
    "name": "store-locator",
    "parameters": {"town": "Which town.", "shop_id": "Which shop."},
    "results": ["address", "hours"],
    "description": "Finds shops.",
    "example": {"query": "shops in Bonn", "plan": 's1 = store_x2d_locator(town="Bonn")'},
}


def test_tool_from_record_reads_name_description_results_and_example() -> None:
    tool = tool_from_record(RECORD)
    assert tool.name == "store_x2d_locator"
    assert tool.description == "Finds shops."
    assert tool.results == ("address", "hours")
    assert tool.example == ToolExample(RECORD["example"]["query"], RECORD["example"]["plan"])
    assert (tool.run, tool.run_async) == (None, None)


def test_parameters_of_a_tool_record_are_required_and_keep_their_order() -> None:
    tool = tool_from_record(RECORD)
    assert [(p.name, p.description, p.required) for p in tool.parameters] == [
        ("town", "Which town.", True),
        ("shop_id", "Which shop.", True),
    ]


def test_parameters_of_a_tool_record_have_the_default_sources() -> None:
    town, shop = tool_from_record(RECORD).parameters
    assert town.sources == set(Source) - {Source.BOOLEAN}
    assert shop.sources == {Source.CONTEXT, Source.STEP}


def test_tool_record_requires_only_a_name() -> None:
    tool = tool_from_record({"name": "ping"})
    assert (tool.parameters, tool.results, tool.example) == ((), (), None)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": 5}, "name"),
        ({"parameters": ["town"]}, "parameters"),
        ({"parameters": {"the town": ""}}, "the town"),
        ({"results": ["a b"]}, "a b"),
        ({"results": "address"}, "results"),
        ({"example": {"query": "q"}}, "example.plan"),
    ],
)
def test_invalid_field_of_a_tool_record_raises_input_error_naming_it(
    change: dict[str, Any], field: str
) -> None:
    with pytest.raises(InputError, match=field):
        tool_from_record({**RECORD, **change})


@pytest.mark.parametrize("record", [None, "ping", [], {}])
def test_tool_record_that_is_empty_or_no_object_raises_input_error(record: Any) -> None:
    with pytest.raises(InputError, match="tools_extra"):
        tool_from_record(record)
