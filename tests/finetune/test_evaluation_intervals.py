"""Intervals, against values that are known and against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from casewright.finetune.evaluation import Verdict, score_classes
from casewright.finetune.evaluation.intervals import (
    Resamples,
    f1_scores,
    macro,
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
    right = data.draw(st.integers(0, count))
    known = stats.binomtest(right, count).proportion_ci(method="wilson")
    assert wilson(right, count) == pytest.approx((known.low, known.high), abs=1e-9)


def test_the_bootstrap_of_a_share_agrees_with_scipy() -> None:
    values = [True] * 30 + [False] * 70
    own = percentile_interval(shares(values, Resamples(100, seed=1)))
    known = stats.bootstrap(
        (np.array(values, dtype=float),), np.mean, method="percentile", rng=0
    ).confidence_interval
    assert own == pytest.approx((known.low, known.high), abs=0.015)


def test_the_same_seed_draws_the_same_resamples_and_another_draws_others() -> None:
    values = [True, False] * 20
    first, again, other = (shares(values, Resamples(40, seed=seed, count=50)) for seed in (0, 0, 1))
    assert (first == again).all()
    assert (first != other).any()


def test_resamples_hold_as_many_items_as_there_are() -> None:
    weights = np.concatenate(list(Resamples(30, count=25).weights()))
    assert weights.shape == (25, 30)
    assert (weights.sum(axis=1) == 30).all()


def test_what_is_drawn_in_blocks_is_not_drawn_twice() -> None:
    # So many items that a block holds only some of the resamples.
    blocks = list(Resamples(300_000, count=12).weights())
    assert len(blocks) > 1
    assert sum(len(block) for block in blocks) == 12
    assert (blocks[0][0] != blocks[1][0]).any()


def test_items_of_a_group_are_drawn_together() -> None:
    weights = np.concatenate(list(Resamples(4, groups=(7, 3, 7, 5), count=200).weights()))
    assert (weights[:, 0] == weights[:, 2]).all()
    assert (weights[:, 0] != weights[:, 1]).any()


def test_groups_widen_the_interval() -> None:
    values = ([True] * 5 + [False] * 5) * 10
    groups = [i // 5 for i in range(100)]
    alone = percentile_interval(shares(values, Resamples(100)))
    together = percentile_interval(shares(values, Resamples(100, groups=groups)))
    assert together[1] - together[0] > 1.5 * (alone[1] - alone[0])


def test_f1_of_a_resample_is_that_of_its_items() -> None:
    draw = np.random.default_rng(0)
    gold = [str(c) for c in draw.choice(list("abc"), 30)]
    predicted = [g if draw.random() < 0.6 else str(draw.choice(list("abcd"))) for g in gold]
    resamples = Resamples(30, count=20)
    found = f1_scores(gold, predicted, ["a", "b", "c"], resamples)
    for weights, scores in zip(np.concatenate(list(resamples.weights())), found, strict=True):
        verdicts = [
            Verdict(
                gold[i], predicted[i], tools=False, arguments=False, paper=False, milliseconds=0
            )
            for i, times in enumerate(weights)
            for _ in range(int(times))
        ]
        *classes, overall = score_classes(verdicts)
        assert scores == pytest.approx([score.f1 for score in classes])
        assert macro(scores[None])[0] == pytest.approx(overall.f1)


def test_a_class_that_a_resample_lacks_has_no_part_in_its_mean() -> None:
    found = f1_scores(["a"] * 20 + ["b"], ["a"] * 20 + ["b"], ["a", "b"], Resamples(21, count=200))
    assert np.isnan(found[:, 1]).any()
    assert (macro(found) == 1).all()
