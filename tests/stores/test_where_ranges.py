from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from casewright.errors import InputError
from casewright.stores import CaseStore
from tests.stores.helpers import note, note_schema

#: Values of the field ``f``.
VALUES: list[Any] = [
    *(0, 1, -1, 5, 2.5, -0.5, 1.0, 1e-9, 1e300, -1e300, 2**31, 2**53, -(2**60), 2**70),
    *(True, False, None, "", "5", "red", {"x": 5}, [], [1], [5, 9], [-3, 0.25, "red"], [0, 100]),
    *([True], [[5]], [None], [{"x": 5}], ["5"]),
]


def is_true_for(condition: Any, value: Any) -> bool:
    """Return True if a value fulfils a condition; the rules of ``where`` in plain Python."""
    values = value if isinstance(value, list) else [value]
    numbers = [v for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)]
    if not isinstance(condition, dict):
        allowed = condition if isinstance(condition, list) else [condition]
        return any(type(v) is type(w) and v == w for v in values for w in allowed)
    if "not" in condition:
        return not is_true_for(condition["not"], value)
    comparisons = {
        "gte": lambda v, bound: v >= bound,
        "gt": lambda v, bound: v > bound,
        "lte": lambda v, bound: v <= bound,
        "lt": lambda v, bound: v < bound,
    }
    return any(all(comparisons[op](v, bound) for op, bound in condition.items()) for v in numbers)


BOUNDS: list[Any] = [0, 1, -1, 5, 2.5, -0.5, 1.0, 99.5, -(10**20), 10**20, 2**53, 1e300, -1e308]
RANGES = [{op: bound} for op in ("gte", "gt", "lte", "lt") for bound in BOUNDS] + [
    {low: a, high: b}
    for low, high in (("gte", "lt"), ("gt", "lte"), ("gt", "lt"), ("gte", "lte"))
    for a, b in ((0, 5), (5, 5), (5, 0), (-3, -0.5), (0.5, 2.5), (6, 8), (1, 99))
]
RANGES += [{"gte": 0, "gt": 0, "lte": 5, "lt": 5}, {"gt": 0, "gte": 2}]
NOTS: list[Any] = [
    {"not": condition}
    for condition in (*(0, 1, 5, "5", "red", "", "none", True, False), [], [5, 1], ["red", "5"])
]


def test_where_ranges_and_not_match_python_semantics_on_every_engine(store: CaseStore) -> None:
    cases = [note(f"n {i}", i, metadata={"f": value}) for i, value in enumerate(VALUES)]
    store.add([*cases, note("n none", len(VALUES))])
    values = [*VALUES, None]
    for condition in RANGES + NOTS:
        expected = [i for i, value in enumerate(values) if is_true_for(condition, value)]
        cases = store.all({"f": condition})
        assert sorted(case.solution for case in cases) == expected, condition
        assert store.count({"f": condition}) == len(expected), condition
    for condition in RANGES[::7] + NOTS:
        expected = [i for i, value in enumerate(values) if is_true_for(condition, value)]
        hits = store.search("n", 100, where={"f": condition})
        assert sorted(hit.case.solution for hit in hits) == expected, condition
        hits = store.select("n", 100, where={"f": condition}).hits
        assert sorted(hit.case.solution for hit in hits) == expected, condition


def test_where_distinguishes_whole_numbers_of_any_size_in_a_folder(folder: Path) -> None:
    with CaseStore(note_schema(), folder) as store:
        sizes = [2**53, 2**53 + 1, 2**64, 2**64 + 1, 10**30, 10**30 + 1, 10**400]
        store.add([note(f"n {i}", i, metadata={"f": size}) for i, size in enumerate(sizes)])
        for i, size in enumerate(sizes):
            assert [case.solution for case in store.all({"f": size})] == [i]
            assert store.count({"f": {"not": size}}) == len(sizes) - 1
        assert store.count({"f": {"gt": 2**54, "lt": 2**65}}) == 2


def test_where_requires_the_conditions_on_all_fields(store: CaseStore) -> None:
    fields = [{"a": a, "b": b, "c": c} for a, b, c in itertools.product((1, 2, 3), (0.5, 7), "xy")]
    store.add([note(f"n {i}", i, metadata=field) for i, field in enumerate(fields)])
    where = {"a": {"gt": 1}, "b": {"lte": 1}, "c": {"not": "x"}}
    expected = [
        i for i, f in enumerate(fields) if all(is_true_for(where[name], f[name]) for name in where)
    ]
    assert sorted(case.solution for case in store.all(where)) == expected


FIELDS = [
    "a.b",
    ".",
    "a b",
    " ",
    "a[0]",
    "[]",
    "ü",
    "a\\b",
    "a'b",
    "a\nb",
    "a/b",
    "$",
    "e\u0301",
    "0",
]


def test_where_ranges_and_not_accept_field_names_with_special_characters(store: CaseStore) -> None:
    nested = {"a": {"b": 9}, "c": 9}
    for number in range(4):
        fields = {field: number * 100 + index for index, field in enumerate(FIELDS)}
        store.add([note(f"n {number}", number, metadata={**fields, **nested})])
    store.add([note("n none", 4, metadata=nested)])
    for index, field in enumerate(FIELDS):
        for condition, expected in (
            ({"gte": 200}, [2, 3]),
            ({"gt": index, "lt": 900}, [1, 2, 3]),
            ({"not": [100 + index, 200 + index]}, [0, 3, 4]),
            (300 + index, [3]),
        ):
            cases = store.all({field: condition})
            assert sorted(case.solution for case in cases) == expected, field


INVALID_CONDITIONS: list[Any] = [
    *({}, {"gte": None}, {"gte": "1"}, {"gte": True}, {"gte": float("nan")}, {"lt": [1]}),
    *({"gte": float("inf")}, {"lt": 10**400}, {"gte": 1, "ge": 2}, {"between": [1, 2]}),
    *({"not": None}, {"not": 0.5}, {"not": {"gte": 1}}, {"not": 1, "gte": 1}, {"not": ["a", 1]}),
    *({1: 2}, 0.5, None, [0.5], [[1]], b"x", object()),
]


@pytest.mark.parametrize("filled", [False, True])
def test_where_refuses_invalid_ranges_and_field_names(store: CaseStore, filled: bool) -> None:
    if filled:
        store.add([note("n", metadata={"f": 1})])
    fields: list[Any] = ["", 'a"b', '"', 1, None, ("a",)]
    invalid = [{"f": condition} for condition in INVALID_CONDITIONS]
    invalid += [{field: condition} for field in fields for condition in (1, {"gte": 1}, {"not": 1})]
    for where in invalid:
        for read in (
            store.count,
            store.all,
            lambda where: store.search("n", where=where),
            lambda where: store.select("n", where=where),
        ):
            with pytest.raises(InputError, match="where"):
                read(where)
