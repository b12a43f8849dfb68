from __future__ import annotations

from typing import Any

import pytest

from casewright.errors import InputError
from casewright.stores import CaseStore
from tests.stores.helpers import note

CASES = [
    note("a red apple", 0, metadata={"tenant": "acme", "year": 2020, "open": True}),
    note("a green apple", 1, metadata={"tenant": "acme", "year": 2021, "open": False}),
    note("a red pear", 2, metadata={"tenant": "zeta", "year": 2020, "open": True}),
    note("a green pear", 3, metadata={"tenant": "zeta", "tags": ["x", "y"]}),
    note("a plum", 4),
]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (None, {0, 1, 2, 3, 4}),
        ({}, {0, 1, 2, 3, 4}),
        ({"tenant": "acme"}, {0, 1}),
        ({"year": 2020}, {0, 2}),
        ({"open": True}, {0, 2}),
        ({"open": False}, {1}),
        ({"tenant": ["acme"]}, {0, 1}),
        ({"tenant": ["acme", "zeta"]}, {0, 1, 2, 3}),
        ({"tenant": ("zeta", "nobody")}, {2, 3}),
        ({"year": [2020, 2021]}, {0, 1, 2}),
        ({"tenant": "acme", "year": 2020}, {0}),
        ({"tenant": ["acme", "zeta"], "year": 2020, "open": True}, {0, 2}),
        ({"tags": "y"}, {3}),
        ({"tags": ["y", "z"]}, {3}),
        ({"tenant": "nobody"}, set()),
        ({"nothing": 1}, set()),
        ({"tenant": []}, set()),
    ],
    ids=str,
)
def test_where_picks_the_same_cases_in_search_count_and_all(
    store: CaseStore, where: dict[str, Any] | None, expected: set[int]
) -> None:
    store.add(CASES)
    assert {case.solution for case in store.all(where)} == expected
    assert {hit.case.solution for hit in store.search("apple", 10, where=where)} == expected
    assert store.count(where) == len(expected)


def test_where_is_applied_before_the_cut_at_k(store: CaseStore) -> None:
    store.add([note(f"apple {i}", i, metadata={"rare": i == 77}) for i in range(100)])
    hits = store.search({"question": "pear"}, 1, where={"rare": True})
    assert [hit.case.solution for hit in hits] == [77]


@pytest.mark.parametrize("field", ["year", "the year", "year-of-issue", "year.of", "år", "n[]"])
def test_where_finds_a_field_by_its_name_whatever_is_in_it(store: CaseStore, field: str) -> None:
    store.add([note("old", 0, metadata={field: 1920}), note("new", 1, metadata={field: 2020})])
    assert [case.solution for case in store.all({field: 2020})] == [1]
    assert store.count({field: [1920, 2020]}) == 2


@pytest.mark.parametrize(
    "value", [[True, False], ["acme", 1], 0.5, None], ids=["booleans", "mixed", "float", "none"]
)
def test_where_takes_any_json_value_or_refuses_it_as_input(store: CaseStore, value: Any) -> None:
    store.add(CASES)
    try:
        hits = store.search("apple", 10, where={"open": value})
    except InputError:
        return
    plain = value if isinstance(value, list) else [value]
    assert {hit.case.solution for hit in hits} == {
        i for i, case in enumerate(CASES) if case.metadata.get("open") in plain
    }
