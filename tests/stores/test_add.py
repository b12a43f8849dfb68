from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from casewright.errors import InputError
from casewright.stores import Case, CaseStore
from tests.stores.helpers import note, note_schema
from tests.support.encoders import BrokenEncoder, HashingEncoder


def test_add_returns_ids_in_the_order_of_the_cases(store: CaseStore) -> None:
    ids = store.add(note(f"question {i}", i) for i in range(5))
    assert [case.solution for case in store.get(ids)] == [0, 1, 2, 3, 4]


def test_add_of_no_case_leaves_the_store_empty(store: CaseStore) -> None:
    assert store.add([]) == []
    assert store.count() == 0
    assert store.all() == []
    assert store.search("anything") == []


def test_adding_the_same_id_again_replaces_case_and_vector(store: CaseStore) -> None:
    (case_id,) = store.add([note("apples and pears", "old")])
    store.add([note("trains and ships", "new", id=case_id), note("apples", "other")])
    assert store.get(case_id)[0].solution == "new"
    assert store.count() == 2
    assert store.search({"question": "trains and ships"}, 1)[0].case.id == case_id


def test_add_of_two_cases_with_one_id_keeps_the_last(store: CaseStore) -> None:
    pair = note("q", "s", result="first"), note("q", "s", result="second")
    assert len(set(store.add(pair))) == 1
    assert [case.result for case in store.all()] == ["second"]


def test_get_returns_cases_in_requested_order_without_unknown_ids(store: CaseStore) -> None:
    first, second = store.add([note("one", 1), note("two", 2)])
    unknown = "6f9619ff-8b86-d011-b42d-00c04fc964ff"
    cases = store.get([second, "no uuid at all", unknown, first, second])
    assert [case.id for case in cases] == [second, first, second]
    assert store.get([]) == []
    assert store.get(unknown) == []


def test_all_returns_every_case_ordered_by_id() -> None:
    with CaseStore(note_schema()) as store:
        ids = store.add(note(f"question {i}", i, created=f"{9999 - i}") for i in range(2100))
        assert [case.id for case in store.all()] == sorted(ids)


def test_delete_removes_named_cases_and_ignores_unknown_ids(store: CaseStore) -> None:
    ids = store.add([note("one"), note("two"), note("three")])
    store.delete(ids[0])
    store.delete([ids[1], ids[1], ids[0], "no uuid", "6f9619ff-8b86-d011-b42d-00c04fc964ff"])
    store.delete([])
    assert [case.id for case in store.all()] == [ids[2]]
    assert [hit.case.id for hit in store.search("one two three")] == [ids[2]]


@pytest.mark.parametrize("respell", [str.upper, lambda i: "{" + i + "}", lambda i: "urn:uuid:" + i])
def test_get_and_delete_accept_every_spelling_of_an_id(store: CaseStore, respell: Any) -> None:
    (case_id,) = store.add([note("one")])
    assert len(store.get(respell(case_id))) == 1
    store.delete(respell(case_id))
    assert store.count() == 0


def test_clear_removes_every_case_and_the_quality_scale(store: CaseStore) -> None:
    store.clear()
    store.add([note("one", quality=0.9), note("two", quality=0.9)])
    store.clear()
    assert (store.count(), store.all(), store.search("one")) == (0, [], [])
    store.add([note("one", quality=0.1), note("unmeasured")])
    scores = [hit.score for hit in store.search("zzz", lambda_b=0.0)]
    assert scores == pytest.approx([0.1, 0.1], abs=1e-6)


def test_add_encodes_a_thousand_cases_in_batches() -> None:
    encoder = HashingEncoder()
    with CaseStore(note_schema(encoder=encoder)) as store:
        store.add([note(f"question {i}", i) for i in range(1000)])
    sizes = [len(call) for call in encoder.calls]
    assert sum(sizes) == 1000
    assert 2 <= len(sizes) <= 10
    assert max(sizes) <= 512


def test_add_stores_the_batches_before_a_failed_batch() -> None:
    schema = note_schema(encoder=BrokenEncoder())
    cases = [note(f"question {i}", i) for i in range(900)] + [note("a broken one")]
    with CaseStore(schema) as store:
        with pytest.raises(InputError, match="NaN"):
            store.add(cases)
        assert 256 <= store.count() < 900


@pytest.mark.parametrize(
    "case", [note("a broken one", quality=0.9), note("b", quality=math.nan)], ids=["nan", "quality"]
)
def test_failed_first_add_does_not_set_the_quality_scale(case: Case) -> None:
    with CaseStore(note_schema(encoder=BrokenEncoder())) as store:
        with pytest.raises(InputError):
            store.add([case])
        store.add([note("one", quality=0.1), note("two", quality=0.3), note("unmeasured")])
        scores = sorted(hit.score for hit in store.search("zzz", lambda_b=0.0))
    assert scores == pytest.approx([0.1, 0.2, 0.3], abs=1e-6)


@pytest.mark.parametrize("quality", [math.nan, math.inf, -math.inf])
def test_add_refuses_a_quality_that_is_not_finite(store: CaseStore, quality: float) -> None:
    store.add([note("fine", quality=0.5)])
    with pytest.raises(InputError, match="quality"):
        store.add([note("q", quality=quality)])
    assert store.count() == 1


@pytest.mark.parametrize("quality", ["good", [0.5], 10**400, 1j], ids=repr)
def test_add_refuses_a_quality_that_is_not_a_number(quality: Any) -> None:
    with CaseStore(note_schema()) as store, pytest.raises(InputError, match="quality"):
        store.add([note("q", quality=quality)])


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64])
def test_quality_may_be_a_numpy_number(store: CaseStore, kind: Any) -> None:
    store.add([note("q", quality=kind(1))])
    assert [case.quality for case in store.all()] == [1.0]


def test_add_writes_progress_to_stderr_only_on_request(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with CaseStore(note_schema("letters")) as store:
        store.add([note(f"question {i}") for i in range(300)], progress=True)
        captured = capfd.readouterr()
        assert "letters" in captured.err
        assert "300/300" in captured.err
        assert captured.out == ""
        store.add([note(f"another {i}") for i in range(600)])
        assert capfd.readouterr() == ("", "")
