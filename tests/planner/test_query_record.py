from __future__ import annotations

from typing import Any

import pytest

from casewright.errors import InputError
from casewright.planner import PlanRequest, QueryRecord, parse_plan
from casewright.tools import Toolbox, ToolSpec
from tests.planner.helpers import SHOP, errors_of

LOCATOR = {
    "name": "shop-locator",
    "parameters": {"town": "Which town.", "shop_id": "Which shop."},
    "results": ["address"],
}
NAME = "shop_x2d_locator"
CALL = "s1 = own(query=question)\ns2 = " + NAME + "(town={}, shop_id={})"


def shop_request(**more: Any) -> PlanRequest:
    record = {"query": "a shop in Bad Homburg", "context": {"near": "Bonn"}, **more}
    return QueryRecord.read(record).request(SHOP)


def test_query_record_without_changes_uses_the_toolbox_of_the_domain() -> None:
    request = shop_request()
    assert request.toolbox.names == SHOP.names
    assert (request.question, request.context) == ("a shop in Bad Homburg", {"near": "Bonn"})


def test_extra_tool_is_added_for_its_query_record_only() -> None:
    request = shop_request(tools_extra=[LOCATOR])
    assert request.toolbox.names == ("find", "own", "fact", "desk", NAME, "no_evidence")
    assert NAME not in SHOP


@pytest.mark.parametrize(
    "value",
    ['"Bad Homburg"', '"some other town"', "5", "question", "context.near", "s1.title"],
)
def test_parameter_of_an_extra_tool_allows_every_source_except_boolean(value: str) -> None:
    shop_request(tools_extra=[LOCATOR]).validate(parse_plan(CALL.format(value, "s1.item_id")))


@pytest.mark.parametrize(
    ("town", "shop"),
    [
        ("true", "s1.item_id"),
        ("question", '"s-17"'),
        ("question", "17"),
        ("question", "question"),
        ("question", '"Bad Homburg"'),
    ],
)
def test_identifier_of_an_extra_tool_comes_only_from_context_or_steps(town: str, shop: str) -> None:
    request = shop_request(tools_extra=[LOCATOR])
    request.validate(parse_plan(CALL.format("question", "context.near")))
    text = CALL.format(town, shop)
    (error,) = errors_of(text, request.toolbox, request.question, dict(request.context))
    assert error.step == "s2"


@pytest.mark.parametrize("arguments", ["town=question", "shop_id=s1.item_id", ""])
def test_the_parameters_of_an_extra_tool_are_required(arguments: str) -> None:
    request = shop_request(tools_extra=[LOCATOR])
    text = f"s1 = own(query=question)\ns2 = {NAME}({arguments})"
    assert errors_of(text, request.toolbox, request.question)


def test_removed_tool_is_absent_from_the_toolbox() -> None:
    request = shop_request(tools_removed=["own", "desk"])
    assert request.toolbox.names == ("find", "fact", "no_evidence")
    assert errors_of("s1 = desk(query=question)", request.toolbox, request.question)


def test_extra_tool_can_be_removed_by_its_original_name() -> None:
    request = shop_request(tools_extra=[LOCATOR], tools_removed=["shop-locator"])
    assert request.toolbox.names == SHOP.names


def test_tool_with_a_name_like_an_alias_can_be_removed() -> None:
    toolbox = Toolbox([ToolSpec("get_xml", "")])
    record = QueryRecord.read({"query": "q", "tools_removed": ["get_xml"]})
    assert record.request(toolbox).toolbox.names == ("no_evidence",)


def test_no_evidence_cannot_be_removed() -> None:
    assert "no_evidence" in shop_request(tools_removed=["no_evidence"]).toolbox


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tools_removed": ["teleport"]}, "teleport"),
        ({"tools_extra": [{"name": "find"}]}, "find"),
        ({"tools_extra": [{"name": "twice"}, {"name": "twice"}]}, "twice"),
        ({"tools_extra": [{"parameters": {}}]}, "name"),
        ({"tools_extra": [{"name": "a", "parameters": {"b c": ""}}]}, "b c"),
        ({"query": " "}, "empty"),
        ({"query": "a\0b"}, "control"),
        ({"context": {"a": float("nan")}}, "JSON"),
    ],
)
def test_invalid_query_record_raises_input_error(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        shop_request(**change)
