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
def test_where_selects_the_same_cases_in_search_count_and_all(
    store: CaseStore, where: dict[str, Any] | None, expected: set[int]
) -> None:
    store.add(CASES)
    assert {case.solution for case in store.all(where)} == expected
    assert {hit.case.solution for hit in store.search("apple", 10, where=where)} == expected
    assert store.count(where) == len(expected)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (True, [True, [True]]),
        (False, [False]),
        (1, [1, [1, 2]]),
        (0, [0]),
        ("1", ["1"]),
        ("true", ["true"]),
        ("", [""]),
        ([1, 3], [1, [1, 2]]),
        (["a", "1"], ["1", "a", ["a", "b"]]),
        (["A"], []),
        (-3, [-3]),
    ],
    ids=repr,
)
def test_where_distinguishes_booleans_whole_numbers_and_texts(
    store: CaseStore, condition: Any, expected: list[Any]
) -> None:
    values = [1, 0, True, False, 1.0, "1", "a", "", "true", None, [1, 2], [True], ["a", "b"], -3]
    others = [[["a"]], [[1]], {"x": 1}, [{"x": 1}], [], [1.0]]
    store.add([note(f"n {i}", [v], metadata={"f": v}) for i, v in enumerate(values + others)])
    solutions = {repr(case.solution[0]) for case in store.all({"f": condition})}
    assert solutions == {repr(value) for value in expected}


def test_where_is_applied_before_the_limit_k(store: CaseStore) -> None:
    store.add([note(f"apple {i}", i, metadata={"rare": i == 77}) for i in range(100)])
    hits = store.search({"question": "pear"}, 1, where={"rare": True})
    assert [hit.case.solution for hit in hits] == [77]


@pytest.mark.parametrize("field", ["year", "the year", "year-of-issue", "year.of", "år", "n[]"])
def test_where_accepts_field_names_with_special_characters(store: CaseStore, field: str) -> None:
    store.add([note("old", 0, metadata={field: 1920}), note("new", 1, metadata={field: 2020})])
    assert [case.solution for case in store.all({field: 2020})] == [1]
    assert store.count({field: [1920, 2020]}) == 2


@pytest.mark.parametrize(
    "where",
    [{"open": [True, False]}, {"open": ["a", 1]}, {"open": 0.5}, {"open": None}, {'o"': 1}],
    ids=["booleans", "mixed", "float", "none", "field"],
)
def test_where_refuses_unsupported_values_and_field_names(
    store: CaseStore, where: dict[str, Any]
) -> None:
    def check_refusals() -> None:
        for read in (store.count, store.all, lambda w: store.search("apple", where=w)):
            with pytest.raises(InputError, match="where"):
                read(where)

    check_refusals()
    store.add(CASES)
    check_refusals()
