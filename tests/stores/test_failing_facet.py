from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from casewright.errors import DependencyError, FacetError, InputError, StoreError
from casewright.stores import Case, CaseSchema, CaseStore, Facet
from casewright.stores.facet import Components
from tests.stores.helpers import number_id, vector_facet

COUNT, BATCH = 1000, 256
#: The first and last case, and those on both sides of the end of the first batch.
POSITIONS = [0, 255, 256, 999]


def raising_facet(bad_numbers: set[int]) -> Facet:
    """Return a facet whose calls raise if they contain one of the bad problems."""

    def embed(problems: Sequence[Components]) -> Any:
        for problem in problems:
            if problem["n"] in bad_numbers:
                raise RuntimeError(f"no vector for {problem['n']}")
        return np.array([problem["b"] for problem in problems], dtype=np.float32)

    return replace(vector_facet("b", 3), embed_case=embed)


def facet_with_value(bad_numbers: set[int], value: float) -> Facet:
    """Return a facet whose vectors of the bad problems contain the value."""

    def embed(problems: Sequence[Components]) -> Any:
        vectors = np.array([problem["b"] for problem in problems], dtype=np.float64)
        vectors[[problem["n"] in bad_numbers for problem in problems], 1] = value
        return vectors

    return replace(vector_facet("b", 3), embed_case=embed)


FAILURES: dict[str, Callable[[set[int]], Facet]] = {
    "raises": raising_facet,
    "nan": lambda numbers: facet_with_value(numbers, float("nan")),
    "infinity": lambda numbers: facet_with_value(numbers, float("-inf")),
    "too large": lambda numbers: facet_with_value(numbers, 1e39),
}


def schema(failure: str, bad_numbers: set[int]) -> CaseSchema:
    return CaseSchema("plain", (vector_facet("a", 3), FAILURES[failure](bad_numbers)))


def cases(count: int = COUNT) -> list[Case]:
    rows = np.random.default_rng(0).integers(-9, 9, (count, 2, 3)).tolist()
    return [Case({"n": i, "a": a, "b": b}, i, id=number_id(i)) for i, (a, b) in enumerate(rows)]


def check_add_stops(location: str, failure: str, number: int, count: int = COUNT) -> None:
    bad_numbers = {number}
    with CaseStore(schema(failure, bad_numbers), location) as store:
        with pytest.raises(FacetError) as caught:
            store.add(cases(count))
        message = str(caught.value)
        assert caught.value.facet == "b"
        assert f"The case {number_id(number)} cannot be added: Facet 'b' " in message
        stored = number // BATCH * BATCH
        assert f"The {stored} cases of the batches before it are stored" in message
        assert [case.solution for case in store.all()] == list(range(stored))
        assert len(store.search({"a": [1, 2, 3]}, COUNT)) == stored
        # Without bad cases, the same call stores every case once.
        bad_numbers.clear()
        store.add(cases(count))
        assert [case.solution for case in store.all()] == list(range(count))


@pytest.mark.parametrize(("failure", "number"), [*(("raises", n) for n in POSITIONS), ("nan", 400)])
def test_add_stops_at_a_case_that_a_facet_cannot_embed(failure: str, number: int) -> None:
    check_add_stops(":memory:", failure, number)


def test_add_stops_at_a_case_that_a_facet_cannot_embed_on_every_engine(location: str) -> None:
    check_add_stops(location, "raises", 260, 270)


def check_skipped(location: str, failure: str, bad_numbers: set[int], count: int = COUNT) -> None:
    reports: list[tuple[str, FacetError]] = []
    with CaseStore(schema(failure, bad_numbers), location) as store:
        ids = store.add(cases(count), on_error=lambda case, error: reports.append((case.id, error)))
        good_numbers = [i for i in range(count) if i not in bad_numbers]
        assert ids == [number_id(i) for i in good_numbers]
        assert [case.solution for case in store.all()] == good_numbers
        assert [case_id for case_id, _ in reports] == [number_id(i) for i in sorted(bad_numbers)]
        assert {error.facet for _, error in reports} == {"b"}
        hits = store.search(cases(count)[count // 2].problem, 1)
        assert hits[0].case.solution == count // 2


@pytest.mark.parametrize("number", POSITIONS)
def test_add_with_on_error_stores_all_other_cases(number: int) -> None:
    check_skipped(":memory:", "raises", {number})


@pytest.mark.parametrize("failure", FAILURES)
def test_add_with_on_error_reports_every_bad_case_for_each_failure(failure: str) -> None:
    check_skipped(":memory:", failure, {0, 1, 100, 255, 256, 998, 999})


def test_add_with_on_error_stores_all_other_cases_on_every_engine(location: str) -> None:
    check_skipped(location, "nan", {250}, 270)


def test_add_with_on_error_and_bad_cases_only_creates_no_collection(location: str) -> None:
    reported: list[Case] = []
    with CaseStore(schema("raises", {0, 1}), location) as store:
        assert store.add(cases(2), on_error=lambda case, error: reported.append(case)) == []
        assert [case.solution for case in reported] == [0, 1]
        assert store.engine.layout("plain") is None
        assert (store.count(), store.all()) == (0, [])


def test_add_stops_if_on_error_raises() -> None:
    def give_up(case: Case, error: FacetError) -> None:
        raise KeyError(case.solution)

    with CaseStore(schema("raises", {300})) as store:
        with pytest.raises(KeyError, match="300"):
            store.add(cases(), on_error=give_up)
        assert store.count() == BATCH


@pytest.mark.parametrize("on_error", [None, lambda case, error: None], ids=["ends", "goes on"])
@pytest.mark.parametrize(
    "answer",
    [
        lambda n: np.ones((n, 4)),
        lambda n: np.ones((n + 1, 3)),
        lambda n: np.ones(3 * n),
        lambda n: ["x"] * n,
        lambda n: None,
    ],
    ids=["too wide", "a row too many", "flat", "texts", "nothing"],
)
def test_add_refuses_embeddings_of_wrong_shape_and_stores_nothing(
    answer: Any, on_error: Any
) -> None:
    facet = replace(vector_facet("b", 3), embed_case=lambda problems: answer(len(problems)))
    with CaseStore(CaseSchema("plain", (facet,))) as store:
        with pytest.raises(InputError, match="'b'") as caught:
            store.add(cases(10), on_error=on_error)
        assert not isinstance(caught.value, FacetError)
        assert store.count() == 0


def test_add_with_on_error_stores_all_cases_if_only_batches_fail() -> None:
    def embed(problems: Sequence[Components]) -> Any:
        if len(problems) > 1:
            raise MemoryError("one at a time")
        return [problem["b"] for problem in problems]

    reported: list[Case] = []
    facet = replace(vector_facet("b", 3), embed_case=embed)
    with CaseStore(CaseSchema("plain", (facet,))) as store:
        store.add(cases(300), on_error=lambda case, error: reported.append(case))
        assert (store.count(), reported) == (300, [])


def test_engine_refuses_a_vector_with_nan(location: str) -> None:
    with CaseStore(schema("raises", set()), location) as store:
        store.add(cases(3))
        broken = np.full((1, store.schema.dimension), np.nan, dtype=np.float32)
        with pytest.raises((InputError, StoreError)):
            store.engine.upsert("plain", [number_id(9)], broken, [cases(1)[0].to_json()])
        assert store.search(cases(3)[1].problem, 9)[0].case.solution == 1
        assert store.count() == 3


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_query_with_a_non_finite_embedding_raises_facet_error(location: str, value: float) -> None:
    with CaseStore(schema("raises", set()), location) as store:
        store.add(cases(3))
        for method in (store.search, store.select):
            with pytest.raises(FacetError, match="NaN or infinity") as caught:
                method({"a": [1, 1, 1], "b": [0, value, 1]})
            assert caught.value.facet == "b"


@pytest.mark.parametrize("on_error", [None, lambda case, error: None])
def test_missing_encoder_package_raises_dependency_error_and_no_facet_error(on_error: Any) -> None:
    def embed(problems: Sequence[Components]) -> Any:
        raise DependencyError("No encoder. Run: pip install it")

    facet = replace(vector_facet("b", 3), embed_case=embed)
    with (
        CaseStore(CaseSchema("missing", (facet,))) as store,
        pytest.raises(DependencyError, match=r"^No encoder\. Run: pip install it$"),
    ):
        store.add([Case({"n": 1, "b": [1.0, 0.0, 0.0]})], on_error=on_error)
