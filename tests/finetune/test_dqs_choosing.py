"""Choosing annotated queries by a recipe's settings, and the figures of a pool."""

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

THINGS = ("lamp", "chair", "tent", "mug", "sock", "radio", "torch", "desk", "rug", "kettle")
ADJECTIVES = ("red", "small", "cheap", "wooden", "old", "light", "soft", "tall")
ENCODER = HashingEncoder(64)


def text(number: int) -> str:
    return f"a {ADJECTIVES[number // 10]} {THINGS[number % 10]}"


def annotated(texts: list[str], plan: str = "s1 = find(query=question)") -> list[AnnotatedQuery]:
    return [
        AnnotatedQuery.read({"id": str(number), "query": query, "plan": plan})
        for number, query in enumerate(texts)
    ]


QUERIES = annotated([text(number) for number in range(80)])


def chosen(settings: dict[str, Any], seed: int = 0) -> list[str]:
    if settings["method"] == "dqs_extremes":
        settings = {"extremes": 0.3, **settings}
    found = choose_queries(QUERIES, SamplingSettings.model_validate(settings), ENCODER, seed)
    return [str(query.record.id) for query in found]


def test_default_sampling_chooses_all_queries() -> None:
    assert choose_queries(QUERIES, SamplingSettings(), ENCODER, 0) == QUERIES


@pytest.mark.parametrize("method", METHODS)
def test_sampling_method_gives_the_requested_size_in_query_order(method: str) -> None:
    found = chosen({"method": method, "size": 30, "initial": 8})
    assert len(set(found)) == 30
    assert found == sorted(found, key=int)
    assert chosen({"method": method, "size": 30, "initial": 8}) == found
    assert chosen({"method": method, "size": 30, "initial": 8}, seed=1) != found


@pytest.mark.parametrize("method", METHODS)
def test_default_sample_size_is_twice_the_initial_pool(method: str) -> None:
    assert len(chosen({"method": method, "initial": 0.2})) == 32


def test_sampling_methods_share_the_same_initial_pool() -> None:
    by = {m: set(chosen({"method": m, "size": 20, "initial": 10})) for m in METHODS}
    shared = by["dqs"] & by["dqs_large"] & by["facility_location"]
    assert len(shared) >= 10
    assert len({frozenset(found) for found in by.values()}) == len(METHODS)


def test_equal_questions_count_once_unless_their_plans_differ() -> None:
    twice = [*QUERIES[:3], *annotated(["A RED  lamp"]), *annotated([text(0)], "s1 = desk()")]
    found = choose_queries(twice, SamplingSettings(method="random", size=4), ENCODER, 0)
    assert [query.query for query in found] == [text(0), text(1), text(2), text(0)]
    with pytest.raises(InputError, match="5 queries cannot be drawn: the large pool has 4"):
        choose_queries(twice, SamplingSettings(method="random", size=5), ENCODER, 0)


def test_shop_queries_are_chosen_the_same_for_the_same_seed() -> None:
    queries = shop_queries()
    encoder = HashingEncoder(64)
    wanted = SamplingSettings(method="dqs", initial=200, size=600)
    found = choose_queries(queries, wanted, encoder, 7)
    assert len({query.record.id for query in found}) == 600
    assert choose_queries(queries, wanted, encoder, 7) == found
    assert {query.label for query in found} == {query.label for query in queries}


def test_sampling_more_queries_than_exist_is_refused() -> None:
    with pytest.raises(InputError, match=r"sampling: 81 queries .* 80 different"):
        chosen({"method": "dqs", "size": 81})


@pytest.mark.parametrize(
    "bad",
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
def test_invalid_sampling_settings_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SamplingSettings.model_validate(bad)


def test_unknown_sampling_method_is_refused() -> None:
    with pytest.raises(InputError, match="no method 'best'"):
        sample_pool([{"query": "a"}], [{"query": "b"}], ENCODER, method="best")


def test_pool_figures_equal_those_of_the_full_matrix() -> None:
    rng = np.random.default_rng(1)
    large = rng.normal(size=(60, 8))
    picked = np.concatenate([large[:10], large[:1] * 2])
    initial = rng.normal(size=(5, 8))

    def unit(rows: Any) -> Any:
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    near = unit(large) @ unit(picked).T
    own = unit(picked) @ unit(picked).T
    pairs = own[~np.eye(len(own), dtype=bool)]
    to_initial = (unit(large) @ unit(initial).T).max(axis=1)
    found = pool_figures(picked, large, best_similarity(large, initial))
    assert found.queries == 11
    assert found.coverage == pytest.approx(near.max(axis=1).mean())
    assert found.coverage_with_initial == pytest.approx(
        np.maximum(near.max(axis=1), to_initial).mean()
    )
    assert found.mean_similarity == pytest.approx(pairs.mean())
    assert found.near_duplicates == pytest.approx(2 / 11)


def test_pool_figures_of_one_query_have_no_mean_similarity() -> None:
    large = np.eye(3)
    found = pool_figures(large[:1], large, np.zeros(3))
    assert found.mean_similarity is None
    assert found.near_duplicates == 0


def test_facility_location_covers_more_of_a_pool_than_a_random_sample() -> None:
    records = [{"id": str(n), "query": text(n)} for n in range(80)]
    made = sample_pool(
        records[:6],
        records,
        ENCODER,
        method="facility_location",
        size=12,
        extremes=0.2,
        compare=True,
    )
    assert set(made.figures) == {"initial", *METHODS}
    facility, control = made.figures["facility_location"], made.figures["random"]
    assert facility.coverage_with_initial > control.coverage_with_initial
    assert {row["query"] for row in made.sheet}.isdisjoint(text(n) for n in range(6))
    assert [set(row) for row in made.sheet] == [{"id", "query", "context", "plan", "class"}] * 12


def test_comparison_omits_a_method_that_cannot_draw_the_sample_size(
    capsys: pytest.CaptureFixture[str],
) -> None:
    records = [{"id": str(n), "query": text(n)} for n in range(80)]
    made = sample_pool(records[:2], records, ENCODER, size=20, compare=True)
    assert set(made.figures) == {"initial", *METHODS} - {"dqs_extremes"}
    assert "dqs_extremes is not compared: 20 queries cannot be drawn" in capsys.readouterr().err
    with pytest.raises(InputError, match="Raise the extremes"):
        sample_pool(records[:2], records, ENCODER, method="dqs_extremes", size=20)


def test_pool_smaller_than_the_sample_is_refused_before_anything_is_embedded() -> None:
    records = [{"id": str(n), "query": text(n)} for n in range(20)]
    encoder = HashingEncoder(8)
    with pytest.raises(InputError, match="15 queries cannot be sampled: the pool has 10"):
        sample_pool(records[:10], records, encoder, size=15)
    assert encoder.calls == []
