"""F1@k of retrieval with any weighting of the facets, F1@k of controls, and a grid search.

If h of a question's two parents are among the first k cases, precision is h/k and recall is h/2, so
F1 is 2h/(k + 2) (CBR-RAG, section 6). Ranks count from 1.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from casewright.bench.harness import tracked
from casewright.stores import CaseStore, Encoder
from casewright.stores.hit import DECIMALS
from casewright_legal.bench_sets import SEED, QaSet
from casewright_legal.cases import QA_COMPONENTS, qa_schema

Weighting = tuple[float, float, float]
Integers = NDArray[np.int64]
Scores = NDArray[np.float64]

#: The numbers of retrieved cases in the paper's table.
KS = (1, 3, 5, 7, 9, 13, 19, 23, 37)
#: The paper's weightings of question, support and entities; the last is the paper's best.
WEIGHTINGS = (
    *((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    *((0.20, 0.40, 0.40), (0.30, 0.40, 0.30), (0.25, 0.40, 0.35)),
)
PAPERS_BEST = WEIGHTINGS[-1]
#: Number of label shuffles, and of bootstrap samples for an interval.
SHUFFLE_COUNT, RESAMPLE_COUNT = 20, 10_000
#: The weights in the grid are multiples of 1 / GRID_STEPS.
GRID_STEPS = 20
#: The rank of a parent that was not retrieved; it exceeds every k.
NOT_FOUND_RANK = 1_000_000


class RetrievalTrial(AbstractContextManager["RetrievalTrial"]):
    """Searches a set's cases for the set's questions; a ``with`` block closes the store.

    Attributes:
        parents: Columns of each question's parents, on the last axis of ``cosines``.
        order: The position of each case's id in sorted order, as (cases,); it decides ties.
    """

    def __init__(self, data: QaSet, encoder: Encoder) -> None:
        self.data = data
        self._schema = qa_schema(encoder, "bench_legal")
        self._store = CaseStore(self._schema)
        ids = self._store.add(data.cases)
        # Equal cases have the same id, and one column.
        case_by_id = dict(zip(ids, data.cases, strict=True))
        self._cases = list(case_by_id.values())
        self._columns = {case_id: column for column, case_id in enumerate(case_by_id)}
        self.parents: Integers = np.array(
            [[self._columns[ids[n]] for n in question.parents] for question in data.questions],
            dtype=np.int64,
        )
        self.order: Integers = np.argsort(np.argsort(np.array(list(case_by_id)))).astype(np.int64)
        self._rankings: dict[Weighting, list[list[int]]] = {}

    def __exit__(self, *_: object) -> None:
        self._store.close()

    def __len__(self) -> int:
        return len(self._cases)

    def size(self) -> dict[str, int]:
        """Return the numbers of cases, questions, and questions that are left out."""
        sizes = {"cases": len(self), "questions": len(self.data.questions)}
        return {**sizes, "questions_left_out": self.data.left_out_count}

    def rankings(self, weights: Weighting) -> list[list[int]]:
        """Return the columns of the retrieved cases for each question, best first."""
        if weights not in self._rankings:
            weight_by_facet = dict(zip(QA_COMPONENTS, weights, strict=True))
            label = f"Searching {self.data.name} by {label_of(weights)}"
            rankings = []
            for question in tracked(label, self.data.questions):
                hits = self._store.search(question.text, KS[-1], weights=weight_by_facet)
                rankings.append([self._columns[hit.case.id] for hit in hits])
            self._rankings[weights] = rankings
        return self._rankings[weights]

    def ranks(self, weights: Weighting, labels: Sequence[int] | None = None) -> Integers:
        """Return the ranks of the parents, as (questions, 2).

        A question's label is the index of the question whose parents are ranked. By default, each
        question has its own index as its label.
        """
        ranks = []
        parents = self.parents if labels is None else self.parents[list(labels)]
        for ranking, pair in zip(self.rankings(weights), parents, strict=True):
            ranks.append([ranking.index(p) + 1 if p in ranking else NOT_FOUND_RANK for p in pair])
        return np.array(ranks, dtype=np.int64)

    def scores(self, weights: Weighting) -> Scores:
        """Return each question's F1@k, as (questions, len(KS))."""
        return f1_at_k(self.ranks(weights))

    def cosines(self) -> Scores:
        """Return the cosines of questions and cases by facet, as (3, questions, cases)."""
        schema = self._schema
        cases = schema.vectors([case.problem for case in self._cases])
        questions = [schema.query(question.text) for question in self.data.questions]
        queries = schema.vectors(questions, query=True)
        facets = [schema.slices[name] for name in QA_COMPONENTS]
        return np.stack([queries[:, f] @ cases[:, f].T for f in facets]).astype(np.float64)

    def agreement(self, weights: Weighting, cosines: Scores) -> float:
        """Return the proportion of questions whose cases the store ranks as the cosines do."""
        scores = blend(cosines, weights)
        exact = [np.lexsort((self.order, -row))[: KS[-1]].tolist() for row in scores]
        return float(np.mean([a == b for a, b in zip(exact, self.rankings(weights), strict=True)]))


def label_of(weights: Weighting) -> str:
    """Return a weighting as text for tables."""
    return " ".join(f"{weight:.2f}" for weight in weights)


def f1_at_k(ranks: Integers) -> Scores:
    """Return F1@k, as (questions, len(KS)), from the parents' ranks, (questions, 2)."""
    ks = np.array(KS)
    hits = (ranks[:, :, None] <= ks).sum(axis=1)
    return np.asarray(2 * hits / (ks + 2), dtype=np.float64)


def random_f1_at_k(case_count: int) -> Scores:
    """Return the expected F1@k with all cases in random order, as (len(KS),)."""
    ks = np.array(KS)
    # On average, 2k/n parents are among the first k of n cases.
    hits = 2 * np.minimum(ks, case_count) / case_count
    return np.asarray(2 * hits / (ks + 2), dtype=np.float64)


def other_question_indices(count: int) -> list[list[int]]:
    """Return ``SHUFFLE_COUNT`` shuffles of the questions' indices; no index stays in its place."""
    rng = random.Random(SEED)
    shuffles = []
    for _ in range(SHUFFLE_COUNT):
        cycle = rng.sample(range(count), count)
        successors = dict(zip(cycle, cycle[1:] + cycle[:1], strict=True))
        shuffles.append([successors[question] for question in range(count)])
    return shuffles


def shuffled_f1_at_k(rank: Callable[[Sequence[int]], Integers], count: int) -> Scores:
    """Return the mean F1@k with shuffled labels, as (len(KS),).

    ``rank`` returns the ranks (questions, 2) for the labels of a shuffle.
    """
    f1s = [f1_at_k(rank(labels)).mean(axis=0) for labels in other_question_indices(count)]
    return np.asarray(np.mean(f1s, axis=0), dtype=np.float64)


class Difference(NamedTuple):
    """A mean of paired differences, with its 95 % interval."""

    mean: float
    low: float
    high: float


def paired_difference(ours: Sequence[Scores], theirs: Sequence[Scores]) -> Difference:
    """Return the mean over the sets of ``ours`` minus ``theirs``, with its interval.

    A bootstrap (percentile method) resamples each set's questions.
    """
    from scipy.stats import bootstrap

    differences = [np.asarray(a) - np.asarray(b) for a, b in zip(ours, theirs, strict=True)]

    def mean_over_sets(*sets: Scores, axis: int = -1) -> Any:
        return np.mean([values.mean(axis=axis) for values in sets], axis=0)

    mean = float(mean_over_sets(*differences))
    if all((values == values[0]).all() for values in differences):
        return Difference(mean, mean, mean)
    options: dict[str, Any] = {"n_resamples": RESAMPLE_COUNT, "vectorized": True, "batch": 500}
    options |= {"method": "percentile", "rng": np.random.default_rng(SEED)}
    interval = bootstrap(differences, mean_over_sets, **options).confidence_interval
    return Difference(mean, float(interval.low), float(interval.high))


def grid_weightings() -> Iterator[Weighting]:
    """Yield all weightings of the grid: three multiples of 1 / GRID_STEPS whose sum is 1."""
    for first in range(GRID_STEPS + 1):
        for second in range(GRID_STEPS + 1 - first):
            third = GRID_STEPS - first - second
            yield first / GRID_STEPS, second / GRID_STEPS, third / GRID_STEPS


def blend(cosines: Scores, weights: Weighting) -> Scores:
    """Return the weighted sums (questions, cases) of cosines by facet, rounded as in a store."""
    scores: Scores = np.tensordot(np.asarray(weights), cosines, axes=1)
    return scores.round(DECIMALS)


def ranks_of(scores: Scores, order: Integers, parents: Integers) -> Integers:
    """Return the parents' ranks (questions, 2); ``order`` ranks cases with equal scores."""
    parent_scores = np.take_along_axis(scores, parents, axis=1)[:, :, None]
    all_scores = scores[:, None]
    tied_before = (all_scores == parent_scores) & (order < order[parents][:, :, None])
    return np.asarray(((all_scores > parent_scores) | tied_before).sum(axis=2) + 1, dtype=np.int64)


def best_weighting(sets: Sequence[tuple[Scores, Integers, Integers]]) -> tuple[Weighting, float]:
    """Return the grid's weighting with the highest F1 (the mean over k and sets), and this F1.

    ``sets`` has the cosines, order and parents of each set's development questions.
    """

    def score(weights: Weighting) -> float:
        ranks = [ranks_of(blend(cos, weights), order, parents) for cos, order, parents in sets]
        return float(np.mean([f1_at_k(set_ranks).mean() for set_ranks in ranks]))

    scores = {weights: score(weights) for weights in grid_weightings()}
    best = max(scores, key=lambda weights: scores[weights])
    return best, scores[best]
