from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from casewright.errors import InputError
from casewright.stores import Binary, Case, CaseSchema, CaseStore, Change
from tests.stores.helpers import note, note_schema, number_id, vector_facet
from tests.support.encoders import HashingEncoder

UNKNOWN = "6f9619ff-8b86-d011-b42d-00c04fc964ff"


@pytest.fixture
def encoder() -> HashingEncoder:
    return HashingEncoder()


@pytest.fixture
def store(location: str, encoder: HashingEncoder) -> Iterator[CaseStore]:
    with CaseStore(note_schema(encoder=encoder), location) as opened:
        yield opened


def scores(store: CaseStore, lambda_b: float = 0.0) -> dict[Any, float]:
    return {hit.case.solution: hit.score for hit in store.search("one", 999, lambda_b=lambda_b)}


def test_updated_quality_changes_scores_without_encoding(
    store: CaseStore, encoder: HashingEncoder
) -> None:
    first, second = store.add([note("one", 1, quality=0.2), note("two", 2, quality=0.6)])
    before, calls = scores(store, 1.0), len(encoder.calls)
    store.update({first: Change(quality=0.9), second: Change(quality=None)})
    assert len(encoder.calls) == calls
    assert scores(store) == pytest.approx({1: 0.9, 2: 0.4}, abs=1e-6)
    assert scores(store, 1.0) == before
    assert [case.quality for case in store.get([first, second])] == [0.9, None]
    assert store.select("one", 1, lambda_b=0.0).hits[0].case.id == first


def test_update_keeps_fields_that_the_change_does_not_name(store: CaseStore) -> None:
    case = note(
        "one", [1], quality=0.2, quality_by="judge", result={"ok": True}, metadata={"a": [1, "x"]}
    )
    (case_id,) = store.add([case])
    (before,) = store.all()
    for change, fields in (
        (Change(), {}),
        (Change(quality=0.5, quality_by="other"), {"quality": 0.5, "quality_by": "other"}),
        (Change(result=None), {"result": None}),
        (Change(result=("a", 1)), {"result": ["a", 1]}),
        (Change(metadata={"b": 2}), {"metadata": {"b": 2}}),
        (Change(metadata={}), {"metadata": {}}),
    ):
        store.update({case_id: change})
        (after,) = store.all()
        assert after == changed_case(before, fields)
        before = after
    assert store.count({"b": 2}) == 0


def changed_case(case: Case, fields: dict[str, Any]) -> Case:
    return Case.from_json(case.id, {**case.to_json(), **fields})


def test_where_conditions_use_updated_metadata(store: CaseStore) -> None:
    (case_id,) = store.add([note("one", 1, metadata={"year": 2000, "draft": True})])
    store.update({case_id: Change(metadata={"year": 2020})})
    assert [store.count(w) for w in ({"year": 2000}, {"draft": True})] == [0, 0]
    assert store.count({"year": {"gt": 2010}}) == 1


@pytest.mark.parametrize("respell", [str.upper, lambda i: "{" + i + "}"])
def test_update_accepts_every_spelling_of_an_id(store: CaseStore, respell: Any) -> None:
    (case_id,) = store.add([note("one", 1)])
    store.update({respell(case_id): Change(quality=0.5)})
    assert [(case.id, case.quality) for case in store.all()] == [(case_id, 0.5)]


INVALID_CHANGES: list[Any] = [
    *(Change(quality=q) for q in (math.nan, math.inf, "good", 1j)),  # type: ignore[arg-type]
    *(Change(metadata=m) for m in (None, "abc", [1], {"a": math.nan}, {"a": {1}})),  # type: ignore[arg-type]
    *(Change(result=r) for r in (math.nan, object(), "\ud800")),
    *(0.5, None),
]


def test_update_with_an_invalid_change_changes_nothing(store: CaseStore) -> None:
    first, second = store.add([note("one", 1, quality=0.2), note("two", 2)])
    before = store.all()
    for change in INVALID_CHANGES:
        with pytest.raises(InputError):
            store.update({first: Change(quality=0.9), second: change})
        assert store.all() == before
    assert scores(store)[1] == pytest.approx(0.2, abs=1e-6)


@pytest.mark.parametrize("unknown", [UNKNOWN, "no uuid", ""])
def test_update_with_an_unknown_id_changes_nothing(store: CaseStore, unknown: str) -> None:
    with pytest.raises(InputError, match=repr(unknown)):
        store.update({unknown: Change(quality=0.9)})
    (case_id,) = store.add([note("one", 1, quality=0.2)])
    with pytest.raises(InputError, match=repr(unknown)):
        store.update({case_id: Change(quality=0.9), unknown: Change(quality=0.9)})
    assert [case.quality for case in store.all()] == [0.2]
    store.update({})
    store.clear()
    with pytest.raises(InputError, match=case_id):
        store.update({case_id: Change(quality=0.9)})


def test_updated_quality_is_clamped_to_the_range_of_the_schema(location: str) -> None:
    schema = note_schema(quality_range=(-20.0, 0.0))
    with CaseStore(schema, location) as store:
        ids = store.add([note(f"q {i}", i, quality=-5) for i in range(3)])
        changes = [Change(quality=quality) for quality in (-99, 7, np.float32(-2.5))]
        store.update(dict(zip(ids, changes, strict=True)))
        assert [case.quality for case in store.get(ids)] == [-20.0, 0.0, -2.5]
        assert scores(store) == pytest.approx({0: -20.0, 1: 0.0, 2: -2.5}, abs=1e-5)


@pytest.mark.parametrize("tenant", [{}, {"tenant": "acme"}], ids=["nobody's", "acme's"])
def test_update_of_metadata_does_not_change_the_tenant(
    store: CaseStore, tenant: dict[str, str]
) -> None:
    (case_id,) = store.add([note("one", 1, metadata={**tenant, "a": 1})])
    for change in ({}, {"tenant": "zeta"}, {"tenant": None}):
        store.update({case_id: Change(metadata={**change, "b": 2})})
        assert [case.metadata for case in store.all()] == [{**tenant, "b": 2}]
    with store.for_tenant("zeta") as zeta:
        assert zeta.count() == 0


def test_update_of_hundreds_of_cases_is_kept_after_reopening(folder: Any) -> None:
    with CaseStore(note_schema(), folder) as store:
        ids = store.add([note(f"q {i}", i, quality=0.5, id=number_id(i)) for i in range(600)])
        before = {h.case.id: h.relevance for h in store.search("q 7", 600)}
        store.update({case_id: Change(quality=i / 600) for i, case_id in enumerate(ids)})
    with CaseStore(note_schema(), folder) as store:
        expected = {i: i / 600 for i in range(600)}
        assert scores(store) == pytest.approx(expected, abs=1e-6)
        assert {h.case.id: h.relevance for h in store.search("q 7", 600)} == before


def test_binary_and_absent_components_survive_an_update(location: str) -> None:
    schema = CaseSchema("plain", (vector_facet("a", 3), vector_facet("b", 2)))
    with CaseStore(schema, location) as store:
        problem = {"a": [1, 2, 3], "picture": Binary("image/png", bytes(range(256)))}
        (case_id,) = store.add([Case(problem, 1)])
        (before,) = store.search({"a": [3, 2, 1], "b": [1, 1]})
        store.update({case_id: Change(quality=0.5)})
        (after,) = store.search({"a": [3, 2, 1], "b": [1, 1]})
        assert after.case.problem == before.case.problem == problem
        assert np.array_equal(after.vector, before.vector)


def test_updating_and_adding_threads_lose_no_change_and_no_case(store: CaseStore) -> None:
    ids = store.add([note(f"kept {i}", i, quality=0.0, result=[]) for i in range(20)])
    start = threading.Barrier(4)

    def update(worker: int) -> None:
        start.wait()
        for turn in range(1, 9):
            change = Change(quality=turn / 10, result=[worker, turn])
            store.update(dict.fromkeys(ids[worker::2], change))

    def add(worker: int) -> None:
        start.wait()
        for turn in range(8):
            store.add([note(f"new {worker} {turn} {i}", [worker, turn, i]) for i in range(3)])

    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(work, worker) for work in (update, add) for worker in range(2)]
        for future in futures:
            future.result()
    cases = {case.id: case for case in store.get(ids)}
    for i, case_id in enumerate(ids):
        assert (cases[case_id].quality, cases[case_id].result) == (0.8, [i % 2, 8])
    assert store.count() == 20 + 2 * 8 * 3
