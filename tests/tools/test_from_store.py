from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest

from casewright.errors import ToolError
from casewright.stores import Case, CaseSchema, CaseStore, text_facet
from casewright.tools import CallContext, Source, rows, tool_from_store
from tests.support.encoders import HashingEncoder

ORDERS = [
    ("red kettle", "ann", "kitchen"),
    ("blue kettle", "bob", "kitchen"),
    ("kettle descaler powder", "ann", "cleaning"),
    ("garden hose", "bob", "garden"),
]


@pytest.fixture
def store() -> Iterator[CaseStore]:
    schema = CaseSchema("orders", (text_facet("title", HashingEncoder(256)),))
    with CaseStore(schema) as opened:
        opened.add(
            Case(
                {"title": title},
                f"It is a {title}.",
                metadata={"key": f"o{i}", "title": title, "customer": name, "aisle": aisle},
            )
            for i, (title, name, aisle) in enumerate(ORDERS)
        )
        yield opened


def search(
    store: CaseStore, arguments: dict[str, Any], user: dict[str, str] | None = None, **more: Any
) -> list[str]:
    more = {"results": {"title": "title"}, **more}
    tool = tool_from_store(store, name="find", description="Finds.", **more)
    assert tool.run is not None
    hits = rows(tool, tool.run(arguments, CallContext(scope=user or {})))
    return [row["title"] for row in hits]


def test_store_tool_takes_a_query_and_returns_evidence_with_source(store: CaseStore) -> None:
    tool = tool_from_store(store, name="find", description="Finds.")
    assert tool.run is not None
    (query,) = tool.parameters
    assert (query.name, query.kind, query.required) == ("query", "string", True)
    (first, *_) = rows(tool, tool.run({"query": "garden hose"}, CallContext()))
    assert set(first) == {"evidence", "source"}
    assert "garden hose" in first["evidence"]
    assert first["source"] == "orders:o3"


def test_store_tool_returns_at_most_k_results_best_first(store: CaseStore) -> None:
    assert search(store, {"query": "red kettle"})[0] == "red kettle"
    assert len(search(store, {"query": "kettle"}, k=2)) == 2


def test_store_tool_reads_results_from_metadata_or_by_a_function(store: CaseStore) -> None:
    tool = tool_from_store(
        store,
        name="find",
        description="Finds.",
        results={"aisle": "aisle", "shout": lambda hit: hit.case.metadata["title"].upper()},
    )
    assert tool.run is not None
    assert tool.results == ("aisle", "shout")
    first = rows(tool, tool.run({"query": "garden hose"}, CallContext()))[0]
    assert (first["aisle"], first["shout"]) == ("garden", "GARDEN HOSE")


def test_store_tool_filter_is_a_parameter_before_the_query(store: CaseStore) -> None:
    tool = tool_from_store(store, name="find", description="", filters=("aisle",))
    assert [parameter.name for parameter in tool.parameters] == ["aisle", "query"]
    assert search(store, {"aisle": "cleaning", "query": "kettle"}, filters=("aisle",)) == [
        "kettle descaler powder"
    ]
    assert search(store, {"aisle": "nowhere", "query": "kettle"}, filters=("aisle",)) == []


@pytest.mark.parametrize("query", ["blue kettle", "garden hose", "customer bob"])
def test_store_tool_with_scope_returns_only_cases_of_that_customer(
    store: CaseStore, query: str
) -> None:
    titles = search(store, {"query": query}, {"customer": "ann"}, scope=("customer",), k=10)
    assert set(titles) <= {"red kettle", "kettle descaler powder"}
    other_titles = search(store, {"query": query}, {"customer": "bob"}, scope=("customer",), k=10)
    assert other_titles
    assert set(other_titles) <= {"blue kettle", "garden hose"}


def test_no_parameter_of_a_store_tool_can_widen_the_scope(store: CaseStore) -> None:
    tool = tool_from_store(store, name="find", description="", scope=("customer",))
    assert [parameter.name for parameter in tool.parameters] == ["query"]
    more: dict[str, Any] = {"scope": ("customer",), "filters": ("customer",)}
    for owner in ("bob", ["ann", "bob"]):
        titles = search(store, {"query": "kettle", "customer": owner}, {"customer": "ann"}, **more)
        assert titles
        assert "blue kettle" not in titles


@pytest.mark.parametrize("user", [{}, {"tenant": "t"}, {"customer": ""}, {"customer": "eve"}])
def test_store_tool_finds_nothing_without_the_scope(store: CaseStore, user: dict[str, str]) -> None:
    assert search(store, {"query": "kettle"}, user, scope=("customer",)) == []


def test_store_tool_omits_hits_below_min_relevance(store: CaseStore) -> None:
    assert search(store, {"query": "red kettle"}, min_relevance=0.9) == ["red kettle"]
    assert search(store, {"query": "purple elephant"}, min_relevance=0.5) == []


def test_store_tool_omits_hits_far_below_the_best_hit(store: CaseStore) -> None:
    titles = search(store, {"query": "red kettle"}, near_best=0.0)
    assert {"red kettle", "blue kettle"} <= set(titles)
    assert search(store, {"query": "red kettle"}, near_best=0.45)[:2] == [
        "red kettle",
        "blue kettle",
    ]
    assert search(store, {"query": "red kettle"}, near_best=0.95) == ["red kettle"]


def test_store_tool_parameters_have_the_declared_sources(store: CaseStore) -> None:
    more: dict[str, Any] = {"name": "find", "description": "", "filters": ("aisle",)}
    tool = tool_from_store(store, sources={"aisle": ("step",)}, **more)
    assert tool.parameters[0].sources == {Source.STEP}
    with pytest.raises(ToolError, match="shelf"):
        tool_from_store(store, sources={"shelf": ("step",)}, **more)


def test_store_tool_returns_a_date_as_text(store: CaseStore) -> None:
    tool = tool_from_store(
        store, name="find", description="Finds.", results={"on": lambda hit: date(2024, 2, 29)}, k=1
    )
    assert tool.run is not None
    (row,) = rows(tool, tool.run({"query": "garden hose"}, CallContext()))
    assert row["on"] == "2024-02-29"
