"""Confidence intervals, compared with known values and with SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casewright.finetune.evaluation.intervals import (
    Resamples,
    f1_interval,
    f1_scores,
    percentile_interval,
    shares,
    wilson,
)


@pytest.mark.parametrize(
    ("right", "count", "low", "high"),
    [(8, 10, 0.4902, 0.9433), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (0, 0, 0.0, 1.0)],
)
def test_wilson_gives_the_known_values(right: int, count: int, low: float, high: float) -> None:
    assert wilson(right, count) == pytest.approx((low, high), abs=5e-5)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 5000), st.data())
def test_wilson_agrees_with_scipy(count: int, data: st.DataObject) -> None:
    from scipy import stats

    right = data.draw(st.integers(0, count))
    known = stats.binomtest(right, count).proportion_ci(method="wilson")
    assert wilson(right, count) == pytest.approx((known.low, known.high), abs=1e-9)


def test_bootstrap_interval_of_a_share_agrees_with_scipy() -> None:
    from scipy import stats

    values = [True] * 30 + [False] * 70
    interval = percentile_interval(shares(values, Resamples(100, seed=1)))
    known = stats.bootstrap(
        (np.array(values, dtype=float),), np.mean, method="percentile", rng=0
    ).confidence_interval
    assert interval == pytest.approx((known.low, known.high), abs=0.015)


def test_resamples_are_equal_for_equal_seeds_and_differ_for_other_seeds() -> None:
    values = [True, False] * 20
    first, equal, other = (shares(values, Resamples(40, seed=seed, count=50)) for seed in (0, 0, 1))
    assert (first == equal).all()
    assert (first != other).any()


def test_every_item_has_a_positive_weight_in_every_resample() -> None:
    weights = np.concatenate(list(Resamples(30, count=25).weights()))
    assert weights.shape == (25, 30)
    assert (weights > 0).all()
    assert weights.sum(axis=1) == pytest.approx(30)


def test_resamples_in_different_blocks_differ() -> None:
    # With so many items a block holds only some of the resamples.
    blocks = list(Resamples(300_000, count=12).weights())
    assert len(blocks) > 1
    assert sum(len(block) for block in blocks) == 12
    assert (blocks[0][0] != blocks[1][0]).any()


def test_items_of_a_group_have_equal_weights_in_every_resample() -> None:
    weights = np.concatenate(list(Resamples(4, groups=(7, 3, 7, 5), count=200).weights()))
    assert (weights[:, 0] == weights[:, 2]).all()
    assert (weights[:, 0] != weights[:, 1]).any()


def test_grouped_items_widen_the_interval() -> None:
    values = ([True] * 5 + [False] * 5) * 10
    groups = [i // 5 for i in range(100)]
    ungrouped = percentile_interval(shares(values, Resamples(100)))
    grouped = percentile_interval(shares(values, Resamples(100, groups=groups)))
    assert grouped[1] - grouped[0] > 1.5 * (ungrouped[1] - ungrouped[0])


def test_f1_scores_of_resamples_equal_weighted_f1_of_scikit_learn() -> None:
    from sklearn.metrics import f1_score

    rng = np.random.default_rng(0)
    gold = [str(c) for c in rng.choice(list("abc"), 30)]
    predicted = [g if rng.random() < 0.6 else str(rng.choice(list("abcd"))) for g in gold]
    resamples = Resamples(30, count=20)
    samples = f1_scores(gold, predicted, ["a", "b", "c"], resamples)
    for weights, scores in zip(np.concatenate(list(resamples.weights())), samples, strict=True):
        known = f1_score(
            gold, predicted, labels=["a", "b", "c"], average=None, sample_weight=weights
        )
        assert scores == pytest.approx(known)


def test_class_of_one_item_counts_in_every_resample() -> None:
    samples = f1_scores(["a"] * 20 + ["b"], ["a"] * 21, ["a", "b"], Resamples(21, count=200))
    # The only item of class b is wrong, so the mean over both classes is below a half.
    assert (samples.mean(axis=1) < 0.5).all()


@pytest.mark.parametrize(
    ("predicted", "low", "high"),
    [("a" * 12, 0.862, 1.0), ("b" * 12, 0.0, 0.390), ("a" * 6 + "b" * 6, 0.405, 0.855)],
)
def test_f1_interval_has_a_width_even_if_all_or_none_are_right(
    predicted: str, low: float, high: float
) -> None:
    assert f1_interval("a", "a" * 12, predicted) == pytest.approx((low, high), abs=5e-4)
