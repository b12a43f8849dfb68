from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewright_legal.bench_weightings import (
    KS,
    SHUFFLE_COUNT,
    best_weighting,
    blend,
    f1_at_k,
    grid_weightings,
    other_question_indices,
    paired_difference,
    random_f1_at_k,
    ranks_of,
    shuffled_f1_at_k,
)


def test_f1_at_k_equals_a_worked_example() -> None:
    # Parents first and fourth: at 1 one of one, one of two; at 3 one of three; from 5 both.
    scores = f1_at_k(np.array([[1, 4]]))[0]
    assert scores[:4] == pytest.approx([2 / 3, 2 / 5, 4 / 7, 4 / 9])
    assert scores[-1] == pytest.approx(4 / 39)
    # Neither is found.
    assert f1_at_k(np.array([[1000, 1000]])).sum() == 0


@given(st.sets(st.integers(1, 60), min_size=2, max_size=2))
def test_f1_is_the_harmonic_mean_of_precision_and_recall(ranks: set[int]) -> None:
    scores = f1_at_k(np.array([sorted(ranks)]))[0]
    for k, score in zip(KS, scores, strict=True):
        hits = sum(rank <= k for rank in ranks)
        precision, recall = hits / k, hits / 2
        expected = 2 * precision * recall / (precision + recall) if hits else 0.0
        assert score == pytest.approx(expected)


@pytest.mark.parametrize("cases", [2, 5, 8, 40])
def test_f1_of_random_order_is_the_mean_over_all_positions_of_two_parents(cases: int) -> None:
    ranks = np.array(list(combinations(range(1, cases + 1), 2)))
    assert random_f1_at_k(cases) == pytest.approx(f1_at_k(ranks).mean(axis=0))


def test_shuffled_labels_never_give_a_question_its_own_label() -> None:
    trials = other_question_indices(9)
    assert len(trials) == SHUFFLE_COUNT
    for given_labels in trials:
        assert sorted(given_labels) == list(range(9))
        assert all(label != question for question, label in enumerate(given_labels))
    assert len({tuple(trial) for trial in trials}) > 1
    assert other_question_indices(9) == trials


def test_shuffled_labels_of_a_perfect_ranking_score_like_random_order() -> None:
    rng, count, cases = np.random.default_rng(5), 300, 120
    parents = np.array([rng.choice(cases, 2, replace=False) for _ in range(count)])
    # Every question ranks its own parents first, and the others in random order.
    ranks_by_case = np.empty((count, cases), dtype=np.int64)
    for question in range(count):
        rest = [case for case in rng.permutation(cases) if case not in parents[question]]
        ranks_by_case[question, [*parents[question], *rest]] = np.arange(1, cases + 1)

    def ranks(labels: Any) -> Any:
        return np.take_along_axis(ranks_by_case, parents[labels], axis=1)

    assert f1_at_k(ranks(range(count))).mean(axis=0)[:2] == pytest.approx([2 / 3, 0.8])
    shuffled = shuffled_f1_at_k(ranks, count)
    # Another question's parents never rank first, so the score is slightly lower.
    assert np.abs(shuffled - random_f1_at_k(cases)).max() < 0.006


def test_interval_encloses_the_mean_difference_and_has_its_sign() -> None:
    rng = np.random.default_rng(2)
    base = [rng.random(60), rng.random(40)]
    raised = [part + 0.1 + 0.05 * rng.standard_normal(len(part)) for part in base]
    interval = paired_difference(raised, base)
    means = [float((a - b).mean()) for a, b in zip(raised, base, strict=True)]
    assert interval.mean == pytest.approx(sum(means) / 2)
    assert 0.05 < interval.low < interval.mean < interval.high < 0.15
    other = paired_difference(base, raised)
    assert (other.low, other.high) == pytest.approx((-interval.high, -interval.low), abs=2e-3)
    assert paired_difference(raised, base) == interval


def test_interval_of_equal_scores_is_zero() -> None:
    interval = paired_difference([np.ones(3)], [np.ones(3)])
    assert (interval.mean, interval.low, interval.high) == (0, 0, 0)


def test_grid_contains_every_weighting_in_steps_of_a_twentieth() -> None:
    grid = list(grid_weightings())
    assert len(set(grid)) == len(grid) == 231
    assert all(sum(weights) == pytest.approx(1) and min(weights) >= 0 for weights in grid)
    assert {(1.0, 0.0, 0.0), (0.25, 0.4, 0.35), (0.2, 0.4, 0.4)} <= set(grid)


def test_equal_scores_are_ranked_by_the_order_of_ids() -> None:
    scores = np.array([[0.5, 0.9, 0.5, 0.5]])
    order = np.array([3, 2, 0, 1])
    assert ranks_of(scores, order, np.array([[0, 3]])).tolist() == [[4, 3]]
    assert ranks_of(scores, order, np.array([[1, 2]])).tolist() == [[1, 2]]


def test_best_weighting_favours_the_facet_that_finds_the_parents() -> None:
    rng = np.random.default_rng(1)
    cosines = rng.random((3, 30, 50)) * 0.5
    parents = np.array([rng.choice(50, 2, replace=False) for _ in range(30)])
    order = np.arange(50)
    np.put_along_axis(cosines[1], parents, 0.9, axis=1)
    weights, score = best_weighting([(cosines, order, parents)])
    assert score == pytest.approx(f1_at_k(np.array([[1, 2]])).mean())
    assert weights[1] >= 0.5
    assert ranks_of(blend(cosines, weights), order, parents).max() == 2
