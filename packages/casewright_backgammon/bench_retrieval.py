"""Table 3: relevance of the nearest cases, and equity loss if their plays are reused.

The representations are the encoding, seven latents with different training, and controls. A case is
relevant if an engine's analysis gives it the query's label; the paper's labels are from a closed
collection.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.bench.harness import mean
from casewright.stores.progress import progress_bar
from casewright_backgammon.decision import Decision
from casewright_backgammon.encoding import encode
from casewright_backgammon.games import Split
from casewright_backgammon.latent import PositionNetwork, combined
from casewright_backgammon.latent_training import EPOCHS, WEIGHTS, examples_of, train_network
from casewright_backgammon.play_features import PlayFeatures, phase, play_features
from casewright_backgammon.position import Position
from casewright_backgammon.training import choice_lost
from casewright_mcbr.layers import UNITS, Floats, unit_rows
from casewright_mcbr.ranking import KS, NAMES, ranking_figures

ENCODING = "encoding"
SHUFFLED = "control: latent (1, 0), worth shuffled"
RANDOM = "control: random numbers"
#: Names of the tables, by the vectors of queries and cases.
COMBINED = "3: a query is its position, a case the mean of before and after its best play"
ALONE = "3: a query is its position, a case its position"
WITH_PLAY = "3: a query is the mean of before and after the play that was made, a case as well"
WITHOUT = "without cases"
FIGURES = "3: mean over the labels, with the paper's figures"
#: Number of nearest cases; a figure is the mean over the first 1, 2, … of these cases.
NEAREST = KS[-1]
#: Figures of the paper's Table 3, in the order of ``NAMES``; the paper's labels are chapters.
TABLE_3 = {
    ENCODING: (0.353, 0.025, 0.044, 0.366, 0.466),
    "latent (0, 1)": (0.366, 0.026, 0.046, 0.380, 0.479),
    "latent (1, 0)": (0.444, 0.035, 0.061, 0.455, 0.537),
    "latent (1, 1)": (0.409, 0.030, 0.053, 0.422, 0.518),
    "latent (1, 0.1)": (0.409, 0.031, 0.055, 0.423, 0.518),
    "latent (1, 0.01)": (0.444, 0.034, 0.060, 0.456, 0.542),
    "latent (1, 0.001)": (0.431, 0.034, 0.060, 0.440, 0.527),
    "latent (1, 0.0001)": (0.442, 0.035, 0.061, 0.454, 0.543),
}
#: Queries in a block, whose similarities to all cases are in memory.
_BLOCK = 256
#: Distances that differ by less than this are ties.
_TIE = 1e-6
#: Leads in pips between the five kinds of race.
_LEADS = (-30, -10, 10, 30)
#: GNU Backgammon's class numbers below the race are bear-off databases.
_RACE = 8

#: Indices of cases.
Indices = NDArray[np.intp]
#: A function from positions to raw vectors, array (n, units).
Embed = Callable[[Sequence[Position]], Floats]


def _engine_class(decision: Decision, _: PlayFeatures) -> Hashable:
    number = decision.engine_class
    return "bear-off" if number is not None and number < _RACE else number


def _lead(decision: Decision, _: PlayFeatures) -> Hashable:
    own, other = decision.position.pips
    return int(np.searchsorted(_LEADS, other - own))


LABELS: dict[str, Callable[[Decision, PlayFeatures], Hashable]] = {
    "engine's class": _engine_class,
    "phase": lambda decision, _: phase(decision.position),
    "race lead": _lead,
    "hits": lambda _, play: play.hits > 0,
    "makes a point": lambda _, play: bool(play.points_made),
    "anchor": lambda _, play: (bool(play.anchors_made), bool(play.anchors_broken)),
    "back checkers leave": lambda _, play: play.left_back > 0,
    "blots left": lambda _, play: min(len(play.blots), 3),
}
#: Labels of positions; the other labels are of the engine's best plays, which a query does not
#: contain.
OF_POSITIONS = ("engine's class", "phase", "race lead")


def labels_of(decisions: Sequence[Decision]) -> dict[str, NDArray[np.str_]]:
    """Return the labels of n decisions by label name, arrays (n)."""
    played = [play_features(decision.position, decision.after(0)) for decision in decisions]
    return {
        name: np.array([str(label(*pair)) for pair in zip(decisions, played, strict=True)])
        for name, label in LABELS.items()
    }


def latent_name(value: float, decoder: float) -> str:
    """Return a latent's name in the tables, with the weights of its value loss and decoder loss."""
    return f"latent ({value:g}, {decoder:g})"


@dataclass(frozen=True, slots=True)
class Representation:
    """A representation of decisions as vectors.

    Attributes:
        name: The name in the tables.
        embed: Returns the vectors of positions; the methods scale them to length 1.
        network: The network of a latent; ``None`` for other representations.
    """

    name: str
    embed: Embed
    network: PositionNetwork | None = None

    def cases(self, decisions: Sequence[Decision]) -> Floats:
        """Return vectors of cases: the mean of the positions before and after the best play."""
        return self._both(decisions, [decision.after(0) for decision in decisions])

    def positions(self, decisions: Sequence[Decision]) -> Floats:
        """Return vectors of the positions, for queries without a play."""
        return unit_rows(self.embed([decision.position for decision in decisions]))

    def with_plays(self, decisions: Sequence[Decision]) -> Floats:
        """Return the means of the positions before and after the play that was made."""
        return self._both(
            decisions, [decision.after(decision.played_rank) for decision in decisions]
        )

    def afters(self, positions: Sequence[Position]) -> Floats:
        """Return vectors of positions after a play, from the side then on roll."""
        return unit_rows(self.embed([position.flipped for position in positions]))

    def _both(self, decisions: Sequence[Decision], afters: Sequence[Position]) -> Floats:
        before = self.embed([decision.position for decision in decisions])
        return unit_rows(combined(before, self.embed(afters)))


def representations(
    split: Split, *, epochs: int = EPOCHS, advance: Callable[[int], None] = lambda _: None
) -> list[Representation]:
    """Return all representations, with networks trained on the split's cases and pool."""
    examples = examples_of(split.cases, split.pool)
    trainings = [(latent_name(*pair), examples, pair[0] / sum(pair)) for pair in WEIGHTS]
    result = [Representation(ENCODING, encode)]
    for name, training_examples, weighting in [
        *trainings,
        (SHUFFLED, examples.shuffled(0), 1.0),
    ]:
        network = train_network(training_examples, weighting, epochs=epochs)
        result.append(Representation(name, network.latents, network))
        advance(1)
    rng = np.random.default_rng(0)

    def random_vectors(positions: Sequence[Position]) -> Floats:
        return rng.standard_normal((len(positions), UNITS)).astype(np.float32)

    return [*result, Representation(RANDOM, random_vectors)]


@dataclass(frozen=True)
class MeasuredSplit:
    """A split with data that all representations use: labels, rolls and candidates."""

    split: Split

    @cached_property
    def query_labels(self) -> Mapping[str, NDArray[np.str_]]:
        """Labels of the queries."""
        return labels_of(self.split.queries)

    @cached_property
    def case_labels(self) -> Mapping[str, NDArray[np.str_]]:
        """Labels of the cases."""
        return labels_of(self.split.cases)

    @cached_property
    def rolls(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rolls of queries and of cases, each as a number."""
        return _rolls(self.split.queries), _rolls(self.split.cases)

    @cached_property
    def afters(self) -> list[list[Position]]:
        """The positions after the candidates of each query."""
        return [
            [query.after(rank) for rank in range(len(query.candidates))]
            for query in self.split.queries
        ]


def _rolls(decisions: Sequence[Decision]) -> NDArray[np.int64]:
    return np.array([10 * min(decision.dice) + max(decision.dice) for decision in decisions])


def nearest(
    measured: MeasuredSplit, queries: Floats, cases: Floats, count: int, *, same_roll: bool
) -> Indices:
    """Return the indices of each query's nearest cases by cosine, array (queries, count).

    The nearest case is first. The split has no cases with the game or the position of a query.

    Args:
        measured: The queries and cases.
        queries: Vectors of the queries, of length 1, array (queries, units).
        cases: Vectors of the cases, of length 1, array (cases, units).
        count: Number of cases for each query.
        same_roll: Consider only cases with the query's roll.
    """
    own, others = measured.rolls
    blocks = []
    for start in range(0, len(queries), _BLOCK):
        cosines = queries[start : start + _BLOCK] @ cases.T
        if same_roll:
            cosines[own[start : start + _BLOCK, None] != others] = -np.inf
        top = np.argpartition(-cosines, count - 1, axis=1)[:, :count]
        order = np.argsort(-np.take_along_axis(cosines, top, axis=1), axis=1, kind="stable")
        blocks.append(np.take_along_axis(top, order, axis=1))
    return np.concatenate(blocks)


def comparison_rows(
    measured: MeasuredSplit, compared: Sequence[Representation]
) -> list[dict[str, Any]]:
    """Return the rows of the three tables, and the rows of the equity loss without cases."""
    rows: list[dict[str, Any]] = []
    split = measured.split
    with progress_bar("Retrieving", len(compared), show=None) as advance:
        for by in compared:
            queries, cases = by.positions(split.queries), by.cases(split.cases)
            rows.append(_figures_row(measured, by, queries, cases))
            rows += [
                _row(measured, by, COMBINED, queries, cases),
                _row(measured, by, ALONE, queries, by.positions(split.cases)),
                # The play that was made hints at the best play, so no loss is computed.
                _row(measured, by, WITH_PLAY, by.with_plays(split.queries), cases, losses=False),
            ]
            advance(1)
    return rows + _rows_without_cases(split.queries, compared)


def _figures_row(
    measured: MeasuredSplit, by: Representation, queries: Floats, cases: Floats
) -> dict[str, Any]:
    """Return a representation's figures, means over the labels, with the published figures."""
    order = nearest(measured, queries, cases, NEAREST, same_roll=False)
    figures = np.mean(list(figures_by_label(measured, order).values()), axis=0)
    published = TABLE_3.get(by.name, (None,) * len(NAMES))
    return {
        "table": FIGURES,
        "compared by": by.name,
        **dict(zip(NAMES, map(float, figures), strict=True)),
        **{f"paper {name}": value for name, value in zip(NAMES, published, strict=True)},
    }


def _row(
    measured: MeasuredSplit,
    by: Representation,
    table: str,
    queries: Floats,
    cases: Floats,
    *,
    losses: bool = True,
) -> dict[str, Any]:
    order = nearest(measured, queries, cases, NEAREST, same_roll=False)
    labels = figures_by_label(measured, order)
    precisions = {name: float(figures[0]) for name, figures in labels.items()}
    average = mean(list(precisions.values()))
    row = {"table": table, "compared by": by.name, **precisions, "mean": average}
    if losses:
        same_roll = nearest(measured, queries, cases, 1, same_roll=True)
        row["lost"] = lost_by_cosine(measured, by, order)
        row["lost, same roll"] = lost_by_cosine(measured, by, same_roll)
        row["near by checkers"] = lost_by_checkers(measured, same_roll)
    return row


def _rows_without_cases(
    queries: Sequence[Decision], compared: Sequence[Representation]
) -> list[dict[str, Any]]:
    lost = {
        "a listed candidate at random": [
            mean([query.equity_loss(rank) for rank in range(len(query.candidates))])
            for query in queries
        ],
        "the play that was made": [query.equity_loss(query.played_rank) for query in queries],
    }
    for by in compared:
        if (network := by.network) is not None:
            lost[f"the network's choice: {by.name}"] = [
                choice_lost(network, query) for query in queries
            ]
    return [{"table": WITHOUT, "chosen by": n, "lost": mean(each)} for n, each in lost.items()]


def figures_by_label(measured: MeasuredSplit, order: Indices) -> dict[str, NDArray[np.float64]]:
    """Return the figures of ``NAMES`` by label; a case is relevant if it has the query's label.

    Each value of a label has the same weight, even if it is rare: the precision of random cases is
    1 / (number of values).
    """
    figures = {}
    for name, labels in measured.query_labels.items():
        case_labels = measured.case_labels[name]
        frequencies = Counter(case_labels.tolist())
        relevant = np.array([frequencies[value] for value in labels.tolist()])
        by_query = ranking_figures(case_labels[order] == labels[:, None], relevant).mean(axis=0)
        by_value = [by_query[:, labels == value].mean(axis=1) for value in np.unique(labels)]
        figures[name] = np.mean(by_value, axis=0)
    return figures


def lost_by_cosine(measured: MeasuredSplit, by: Representation, order: Indices) -> float:
    """Return the mean equity loss of the candidate nearest to the first case's best play.

    The similarity is the representation's cosine of the positions after the plays.

    Args:
        measured: The queries and cases.
        by: The representation.
        order: The cases of each query.
    """
    ends = np.cumsum([len(afters) for afters in measured.afters])[:-1]
    candidates = np.split(by.afters(list(chain.from_iterable(measured.afters))), ends)
    targets = by.afters([measured.split.cases[case].after(0) for case in order[:, 0]])
    triples = zip(measured.split.queries, candidates, targets, strict=True)
    return mean([_lost(query, -(vectors @ target)) for query, vectors, target in triples])


def lost_by_checkers(measured: MeasuredSplit, order: Indices) -> float:
    """Return the mean equity loss with the number of moved checkers as distance."""
    lost = []
    triples = zip(measured.split.queries, measured.afters, order[:, 0], strict=True)
    for query, afters, case in triples:
        target = _counts(measured.split.cases[case].after(0))
        counts = np.stack([_counts(after) for after in afters])
        lost.append(_lost(query, np.abs(counts - target).sum(axis=1)))
    return mean(lost)


def _lost(query: Decision, distances: NDArray[np.float64] | Floats) -> float:
    """Return the equity loss of the nearest candidate; the mean if several are equally near.

    Otherwise the engine's order of the candidates would decide, which is that of their equity.
    """
    nearest_ranks = np.flatnonzero(distances <= distances.min() + _TIE)
    return mean([query.equity_loss(int(rank)) for rank in nearest_ranks])


def _counts(position: Position) -> NDArray[np.float64]:
    return np.array([*position.own, *position.other], dtype=np.float64)
