"""The choice of annotated queries by a recipe's settings, and the figures of a pool."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from casewright.errors import InputError
from casewright.finetune.queries.choose import (
    METHODS,
    SamplingSettings,
    best_similarity,
    choose_queries,
)
from casewright.finetune.queries.sample_pool import pool_figures, sample_pool
from casewright.planner import AnnotatedQuery
from tests.support.encoders import HashingEncoder
from tests.support.shipped import shop_queries

NOUNS = ("lamp", "chair", "tent", "mug", "sock", "radio", "torch", "desk", "rug", "kettle")
ADJECTIVES = ("red", "small", "cheap", "wooden", "old", "light", "soft", "tall")
ENCODER = HashingEncoder(64)


def query_text(number: int) -> str:
    return f"a {ADJECTIVES[number // 10]} {NOUNS[number % 10]}"


def annotate(texts: list[str], plan: str = "s1 = find(query=question)") -> list[AnnotatedQuery]:
    return [
        AnnotatedQuery.read({"id": str(number), "query": query, "plan": plan})
        for number, query in enumerate(texts)
    ]


QUERIES = annotate([query_text(number) for number in range(80)])


def chosen_ids(settings: dict[str, Any], seed: int = 0) -> list[str]:
    if settings["method"] == "dqs_extremes":
        settings = {"extremes": 0.3, **settings}
    queries = choose_queries(QUERIES, SamplingSettings.model_validate(settings), ENCODER, seed)
    return [str(query.record.id) for query in queries]


def test_default_sampling_chooses_all_queries() -> None:
    assert choose_queries(QUERIES, SamplingSettings(), ENCODER, 0) == QUERIES


@pytest.mark.parametrize("method", METHODS)
def test_sampling_method_gives_the_requested_size_in_query_order(method: str) -> None:
    ids = chosen_ids({"method": method, "size": 30, "initial": 8})
    assert len(set(ids)) == 30
    assert ids == sorted(ids, key=int)
    assert chosen_ids({"method": method, "size": 30, "initial": 8}) == ids
    assert chosen_ids({"method": method, "size": 30, "initial": 8}, seed=1) != ids


@pytest.mark.parametrize("method", METHODS)
def test_default_sample_size_is_twice_the_initial_pool(method: str) -> None:
    assert len(chosen_ids({"method": method, "initial": 0.2})) == 32


def test_sampling_methods_share_the_same_initial_pool() -> None:
    ids_by_method = {m: set(chosen_ids({"method": m, "size": 20, "initial": 10})) for m in METHODS}
    shared = ids_by_method["dqs"] & ids_by_method["dqs_large"] & ids_by_method["facility_location"]
    assert len(shared) >= 10
    assert len({frozenset(ids) for ids in ids_by_method.values()}) == len(METHODS)


def test_equal_questions_count_once_unless_their_plans_differ() -> None:
    queries = [*QUERIES[:3], *annotate(["A RED  lamp"]), *annotate([query_text(0)], "s1 = desk()")]
    sample = choose_queries(queries, SamplingSettings(method="random", size=4), ENCODER, 0)
    assert [query.query for query in sample] == [query_text(number) for number in (0, 1, 2, 0)]
    with pytest.raises(InputError, match="5 queries cannot be drawn: the large pool has 4"):
        choose_queries(queries, SamplingSettings(method="random", size=5), ENCODER, 0)


def test_shop_queries_are_chosen_the_same_for_the_same_seed() -> None:
    queries = shop_queries()
    encoder = HashingEncoder(64)
    settings = SamplingSettings(method="dqs", initial=200, size=600)
    sample = choose_queries(queries, settings, encoder, 7)
    assert len({query.record.id for query in sample}) == 600
    assert choose_queries(queries, settings, encoder, 7) == sample
    assert {query.label for query in sample} == {query.label for query in queries}


def test_sampling_more_queries_than_exist_is_refused() -> None:
    with pytest.raises(InputError, match=r"sampling: 81 queries .* 80 different"):
        chosen_ids({"method": "dqs", "size": 81})


@pytest.mark.parametrize(
    "settings",
    [
        {"method": "best"},
        {"initial": 0},
        {"initial": 2.5},
        {"method": "dqs", "size": 10, "initial": 10},
        {"extremes": 0},
        {"sise": 3},
    ],
    ids=["method", "no-initial", "broken-count", "size-below", "extremes", "misspelt"],
)
def test_invalid_sampling_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SamplingSettings.model_validate(settings)


def test_unknown_sampling_method_is_refused() -> None:
    with pytest.raises(InputError, match="no method 'best'"):
        sample_pool([{"query": "a"}], [{"query": "b"}], ENCODER, method="best")


def test_pool_figures_equal_those_of_the_full_matrix() -> None:
    rng = np.random.default_rng(1)
    large = rng.normal(size=(60, 8))
    chosen = np.concatenate([large[:10], large[:1] * 2])
    initial = rng.normal(size=(5, 8))

    def unit(rows: Any) -> Any:
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    coverage = unit(large) @ unit(chosen).T
    pairwise = unit(chosen) @ unit(chosen).T
    pairs = pairwise[~np.eye(len(pairwise), dtype=bool)]
    to_initial = (unit(large) @ unit(initial).T).max(axis=1)
    figures = pool_figures(chosen, large, best_similarity(large, initial))
    assert figures.queries == 11
    assert figures.coverage == pytest.approx(coverage.max(axis=1).mean())
    assert figures.coverage_with_initial == pytest.approx(
        np.maximum(coverage.max(axis=1), to_initial).mean()
    )
    assert figures.mean_similarity == pytest.approx(pairs.mean())
    assert figures.near_duplicates == pytest.approx(2 / 11)


def test_pool_figures_of_one_query_have_no_mean_similarity() -> None:
    large = np.eye(3)
    figures = pool_figures(large[:1], large, np.zeros(3))
    assert figures.mean_similarity is None
    assert figures.near_duplicates == 0


def test_facility_location_covers_more_of_a_pool_than_a_random_sample() -> None:
    records = [{"id": str(n), "query": query_text(n)} for n in range(80)]
    result = sample_pool(
        records[:6],
        records,
        ENCODER,
        method="facility_location",
        size=12,
        extremes=0.2,
        compare=True,
    )
    assert set(result.figures) == {"initial", *METHODS}
    facility, control = result.figures["facility_location"], result.figures["random"]
    assert facility.coverage_with_initial > control.coverage_with_initial
    assert {row["query"] for row in result.sheet}.isdisjoint(query_text(n) for n in range(6))
    assert [set(row) for row in result.sheet] == [{"id", "query", "context", "plan", "class"}] * 12


def test_comparison_omits_a_method_that_cannot_draw_the_sample_size(
    capsys: pytest.CaptureFixture[str],
) -> None:
    records = [{"id": str(n), "query": query_text(n)} for n in range(80)]
    result = sample_pool(records[:2], records, ENCODER, size=20, compare=True)
    assert set(result.figures) == {"initial", *METHODS} - {"dqs_extremes"}
    assert "dqs_extremes is not compared: 20 queries cannot be drawn" in capsys.readouterr().err
    with pytest.raises(InputError, match="Raise the extremes"):
        sample_pool(records[:2], records, ENCODER, method="dqs_extremes", size=20)


def test_pool_smaller_than_the_sample_is_refused_before_anything_is_embedded() -> None:
    records = [{"id": str(n), "query": query_text(n)} for n in range(20)]
    encoder = HashingEncoder(8)
    with pytest.raises(InputError, match="15 queries cannot be sampled: the pool has 10"):
        sample_pool(records[:10], records, encoder, size=15)
    assert encoder.calls == []
