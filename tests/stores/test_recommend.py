from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, get_args

import numpy as np
import pytest
from numpy.typing import NDArray

from casewright.errors import InputError, StoreError
from casewright.stores.engines import connections
from casewright.stores.engines.engine import Engine, NoCollectionError, RecommendScoring
from tests.stores.helpers import number_id
from tests.support.qdrant_server import QdrantServer

DIMENSION, POINTS = 6, 30
STRATEGIES: tuple[RecommendScoring, ...] = get_args(RecommendScoring)
#: Stored vectors (30, 6); positive (3, 6), negative (2, 6) and no examples (0, 6).
VECTORS, POSITIVE, NEGATIVE = np.split(
    np.random.default_rng(5).standard_normal((POINTS + 5, DIMENSION)).astype(np.float32),
    [POINTS, POINTS + 3],
)
NONE = NEGATIVE[:0]
EXAMPLES = pytest.mark.parametrize("negative", [NEGATIVE, NONE], ids=["negative", "positive only"])
STRATEGY = pytest.mark.parametrize("strategy", STRATEGIES)


@pytest.fixture(scope="module")
def engine(shared_place: str) -> Iterator[Engine]:
    """Each engine, with a collection of points whose ``third`` tells every third of them."""
    key, opened = connections.acquire(shared_place)
    try:
        opened.create("points", DIMENSION, {})
        ids = [number_id(i) for i in range(POINTS)]
        payloads = [{"metadata": {"third": i % 3}} for i in range(POINTS)]
        opened.upsert("points", ids, VECTORS, payloads)
        yield opened
    finally:
        connections.release(key, opened)


def scored(
    vectors: NDArray[np.float32], negative: NDArray[np.float32], strategy: RecommendScoring
) -> NDArray[np.float64]:
    """Return the scores (m,) of vectors (m, 6) by the formulas that ``Engine`` documents."""
    to_positive = vectors.astype(np.float64) @ POSITIVE.T
    to_negative = vectors.astype(np.float64) @ negative.T
    if strategy == "sum_scores":
        return np.asarray(to_positive.sum(axis=1) - to_negative.sum(axis=1))

    def squashed(x: float) -> float:
        return (1 + x / (1 + abs(x))) / 2

    scores = []
    for one, other in zip(to_positive, to_negative, strict=True):
        best, worst = max(one), max(other, default=-np.inf)
        scores.append(squashed(best) if best > worst else -squashed(worst))
    return np.array(scores)


def assert_ranks(
    found: Sequence[tuple[str, float]],
    among: Sequence[int],
    negative: NDArray[np.float32],
    strategy: RecommendScoring,
) -> None:
    scores = scored(VECTORS, negative, strategy)
    expected = sorted(among, key=lambda i: -scores[i])[: len(found)]
    assert [id_ for id_, _ in found] == [number_id(i) for i in expected]
    assert [score for _, score in found] == pytest.approx(scores[expected].tolist(), abs=1e-4)


@STRATEGY
@EXAMPLES
def test_recommend_scores_and_orders_by_the_documented_formulas(
    engine: Engine, strategy: RecommendScoring, negative: NDArray[np.float32]
) -> None:
    found = engine.recommend("points", POSITIVE, negative, 99, None, strategy=strategy)
    assert len(found) == POINTS
    assert_ranks(found, range(POINTS), negative, strategy)


@STRATEGY
@EXAMPLES
def test_recommend_gives_the_best_of_those_that_match(
    engine: Engine, strategy: RecommendScoring, negative: NDArray[np.float32]
) -> None:
    where = {"third": {"not": 1}}
    found = engine.recommend("points", POSITIVE, negative, 7, where, strategy=strategy)
    assert len(found) == 7
    assert_ranks(found, [i for i in range(POINTS) if i % 3 != 1], negative, strategy)


def test_point_as_near_to_a_negative_as_to_a_positive_scores_as_negative(engine: Engine) -> None:
    found = engine.recommend("points", POSITIVE, POSITIVE, 99, None)
    assert_ranks(found, range(POINTS), POSITIVE, "best_score")
    assert all(score < 0 for _, score in found)


def test_recommend_finds_the_examples_too(engine: Engine) -> None:
    [(id_, _)] = engine.recommend("points", 9 * VECTORS[4:5], NONE, 1, None)
    assert id_ == number_id(4)


def test_recommend_in_an_unknown_collection_says_so(engine: Engine) -> None:
    with pytest.raises(NoCollectionError, match="elsewhere"):
        engine.recommend("elsewhere", POSITIVE, NEGATIVE, 3, None)


@pytest.mark.parametrize(
    ("positive", "negative", "strategy", "told"),
    [
        (NONE, NEGATIVE, "best_score", "has no positive example. Give at least one"),
        (NONE, NONE, "sum_scores", "has no positive example. Give at least one"),
        (POSITIVE[0], NEGATIVE, "best_score", "positive examples of shape (6,)"),
        (POSITIVE, NEGATIVE[:, :5], "best_score", "negative ones of shape (2, 5)"),
        (POSITIVE * np.nan, NEGATIVE, "sum_scores", "positive examples, 18 numbers are NaN"),
        (POSITIVE, NEGATIVE * np.inf, "sum_scores", "negative examples, 12 numbers are NaN"),
        (POSITIVE, NEGATIVE, "average_vector", "Give one of best_score, sum_scores"),
    ],
    ids=["none", "none at all", "one", "shorter", "nan", "infinite", "strategy"],
)
def test_recommend_refuses_unusable_examples_alike(
    engine: Engine, positive: Any, negative: Any, strategy: Any, told: str
) -> None:
    with pytest.raises(InputError, match=re.escape(told)):
        engine.recommend("points", positive, negative, 3, None, strategy=strategy)


def test_recommend_refuses_examples_of_another_dimension_than_the_collections(
    engine: Engine,
) -> None:
    with pytest.raises((InputError, StoreError)):
        engine.recommend("points", POSITIVE[:, :5], NEGATIVE[:, :5], 3, None)


def test_recommend_asks_a_server_to_search_exactly(server: QdrantServer) -> None:
    key, engine = connections.acquire(server.url)
    try:
        engine.create("points", DIMENSION, {})
        assert engine.recommend("points", POSITIVE, NEGATIVE, 3, None) == []
    finally:
        connections.release(key, engine)
    (asked,) = server.asked("POST", "/query")
    assert asked.body["params"]["exact"]
    assert not asked.body["with_payload"]
