from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from casewright.errors import ToolError
from casewright.tools import ToolSpec, evidence_text, rows

ONE_FIELD = ToolSpec("one", "")
TWO_FIELDS = ToolSpec("two", "", results=("title", "price"))
NO_FIELDS = ToolSpec("none", "", results=())
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@dataclass
class Data:
    title: str
    price: float


class Model(BaseModel):
    title: str
    price: float


class Colour(Enum):
    RED = "red"
    SINCE = date(2024, 2, 29)


#: Values that JSON cannot hold, and the texts that they become.
TEXTS = [
    (date(2024, 2, 29), "2024-02-29"),
    (datetime(2024, 2, 29, 8, 30, tzinfo=UTC), "2024-02-29T08:30:00+00:00"),
    (time(8, 30), "08:30:00"),
    (Decimal("12.50"), "12.50"),
    (UUID(int=7), "00000000-0000-0000-0000-000000000007"),
    (Colour.RED, "red"),
    (Colour.SINCE, "2024-02-29"),
    (PurePosixPath("notes/a.txt"), "notes/a.txt"),
    (Path("a.txt"), "a.txt"),
]


@pytest.mark.parametrize("tool", [ONE_FIELD, TWO_FIELDS])
@pytest.mark.parametrize("empty", [None, "", [], (), {}], ids=repr)
def test_none_and_empty_values_give_no_rows(tool: ToolSpec, empty: Any) -> None:
    assert rows(tool, empty) == []


def test_a_tool_without_results_has_no_rows() -> None:
    assert rows(NO_FIELDS, "whatever") == []


@pytest.mark.parametrize("value", ["text", 5, 1.5, True, False, 0])
def test_single_value_fills_the_only_declared_field(value: Any) -> None:
    assert rows(ONE_FIELD, value) == [{"evidence": value}]


@pytest.mark.parametrize(
    "value", [{"title": "pan", "price": 5.0}, Data("pan", 5.0), Model(title="pan", price=5.0)]
)
def test_mapping_dataclass_or_model_becomes_one_row(value: Any) -> None:
    assert rows(TWO_FIELDS, value) == [{"title": "pan", "price": 5.0}]


def test_list_becomes_one_row_per_member() -> None:
    assert rows(ONE_FIELD, ["a", {"evidence": "b"}]) == [{"evidence": "a"}, {"evidence": "b"}]
    assert rows(TWO_FIELDS, (Data("a", 1.0), {"title": "b", "price": None})) == [
        {"title": "a", "price": 1.0},
        {"title": "b", "price": None},
    ]


def test_rows_omit_undeclared_fields_and_fill_missing_ones_with_null() -> None:
    assert rows(TWO_FIELDS, {"title": "pan", "secret": 1}) == [{"title": "pan", "price": None}]


def test_row_keeps_a_source_that_is_text() -> None:
    assert rows(TWO_FIELDS, {"title": "pan", "source": "p:1"}) == [
        {"title": "pan", "price": None, "source": "p:1"}
    ]
    assert rows(TWO_FIELDS, {"title": "pan", "source": 5}) == [{"title": "pan", "price": None}]


def test_text_for_several_fields_is_read_as_json() -> None:
    assert rows(TWO_FIELDS, '[{"title": "a"}, {"price": 2}]') == [
        {"title": "a", "price": None},
        {"title": None, "price": 2},
    ]


@pytest.mark.parametrize("text", ["null", "{}", "[]"])
def test_empty_json_text_gives_no_rows(text: str) -> None:
    assert rows(TWO_FIELDS, text) == []


@pytest.mark.parametrize(
    "value", ["no json", "[1, 2]", 5, ["a"], {"name": "pan"}, [{"title": "a"}, {"x": 1}], "[" * 10]
)
def test_value_without_the_declared_fields_raises_tool_error(value: Any) -> None:
    with pytest.raises(ToolError, match="two"):
        rows(TWO_FIELDS, value)


def test_tool_error_for_a_null_field_says_it_has_no_value() -> None:
    with pytest.raises(ToolError, match=r"none of its declared fields \['evidence'\] has a value"):
        rows(ONE_FIELD, {"evidence": None})


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), object(), {1, 2}, b"bytes", {"evidence": object()}],
    ids=lambda value: type(value).__name__,
)
def test_value_that_json_cannot_hold_raises_tool_error(value: Any) -> None:
    with pytest.raises(ToolError, match="JSON"):
        rows(ONE_FIELD, value)


@pytest.mark.parametrize(("value", "text"), TEXTS, ids=lambda value: type(value).__name__)
def test_dates_decimals_and_similar_values_become_text_in_rows(value: Any, text: str) -> None:
    assert rows(ONE_FIELD, value) == [{"evidence": text}]
    assert rows(ONE_FIELD, [value, value]) == [{"evidence": text}] * 2
    assert rows(TWO_FIELDS, {"title": value, "price": [{"at": (value,)}]}) == [
        {"title": text, "price": [{"at": [text]}]}
    ]
    assert rows(ONE_FIELD, {"evidence": {value: 1}}) == [{"evidence": {text: 1}}]
    assert rows(TWO_FIELDS, Data(value, 1.0)) == [{"title": text, "price": 1.0}]


def test_value_that_contains_itself_raises_tool_error() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(ToolError, match="JSON"):
        rows(ONE_FIELD, {"evidence": endless})


def test_numpy_array_raises_tool_error() -> None:
    with pytest.raises(ToolError):
        rows(ONE_FIELD, np.array([1, 2]))


@pytest.mark.parametrize("text", ["[" * 100_000, '{"title":' * 100_000], ids=["lists", "objects"])
def test_deeply_nested_json_text_raises_tool_error(text: str) -> None:
    with pytest.raises(ToolError):
        rows(TWO_FIELDS, text)


@settings(deadline=None)
@given(st.sampled_from([ONE_FIELD, TWO_FIELDS]), JSON)
def test_rows_of_any_value_are_plain_json_or_a_tool_error(tool: ToolSpec, value: Any) -> None:
    try:
        result = rows(tool, value)
    except ToolError:
        return
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert all(set(row) - {"source"} == set(tool.results) for row in result)


def test_evidence_text_of_one_field_is_its_value() -> None:
    assert evidence_text({"evidence": "12 GB"}, ["evidence"]) == "12 GB"
    assert evidence_text({"evidence": 12}, ["evidence"]) == "12"
    assert evidence_text({"evidence": ["a", "é"]}, ["evidence"]) == '["a", "é"]'


def test_evidence_text_of_several_fields_names_them_in_order() -> None:
    row = {"price": 5.5, "title": "pan", "source": "p:1"}
    assert evidence_text(row, ["title", "price"]) == "title: pan; price: 5.5"


def test_evidence_text_omits_null_fields() -> None:
    assert evidence_text({"title": "pan", "price": None}, ["title", "price"]) == "pan"
    assert evidence_text({"title": None}, ["title"]) == ""
    assert evidence_text({"title": "pan", "price": 0}, ["title", "price"]) == "title: pan; price: 0"
