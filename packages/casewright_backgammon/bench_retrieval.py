"""Table 3: relevance of the nearest cases, and equity loss if their plays are reused.

The representations are the encoding, the seven latents, and controls. A case is relevant if it has
the query's label by an engine's analysis; the paper's labels are from a closed collection.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.bench.harness import mean
from casewright.stores.progress import progress_bar
from casewright_backgammon.decision import Decision
from casewright_backgammon.encoding import encode
from casewright_backgammon.games import Split
from casewright_backgammon.latent import PositionNetwork, combined
from casewright_backgammon.latent_training import (
    EPOCHS,
    WEIGHTS,
    examples_of,
    train_network,
)
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
FIGURES = "3: mean over the labels, beside the paper's"
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

Places = NDArray[np.intp]
#: A function from positions to raw vectors, array (n, units).
Embed = Callable[[Sequence[Position]], Floats]


def _engine_class(decision: Decision, _: PlayFeatures) -> Hashable:
    known = decision.engine_class
    return "bear-off" if known is not None and known < _RACE else known


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
    """Return the name of a latent in the tables from its weights of value and decoder."""
    return f"latent ({value:g}, {decoder:g})"


@dataclass(frozen=True, slots=True)
class Representation:
    """A representation of decisions as vectors.

    Attributes:
        name: The name in the tables.
        embed: A function to raw vectors; the methods scale these to length 1.
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
            decisions, [decision.after(decision.played_or_best) for decision in decisions]
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
    known = examples_of(split.cases, split.pool)
    trained = [(latent_name(*pair), known, pair[0] / sum(pair)) for pair in WEIGHTS]
    ways = [Representation(ENCODING, encode)]
    for name, examples, weighting in [*trained, (SHUFFLED, known.shuffled(0), 1.0)]:
        network = train_network(examples, weighting, epochs=epochs)
        ways.append(Representation(name, network.latents, network))
        advance(1)
    rng = np.random.default_rng(0)

    def drawn(positions: Sequence[Position]) -> Floats:
        return rng.standard_normal((len(positions), UNITS)).astype(np.float32)

    return [*ways, Representation(RANDOM, drawn)]


@dataclass(frozen=True)
class MeasuredSplit:
    """A split with labels, rolls and candidates, which all representations share."""

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
) -> Places:
    """Return the nearest cases of each query by cosine, array (queries, count), the best first.

    The split has no cases with the game or the position of a query.

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
        likeness = queries[start : start + _BLOCK] @ cases.T
        if same_roll:
            likeness[own[start : start + _BLOCK, None] != others] = -np.inf
        top = np.argpartition(-likeness, count - 1, axis=1)[:, :count]
        order = np.argsort(-np.take_along_axis(likeness, top, axis=1), axis=1, kind="stable")
        blocks.append(np.take_along_axis(top, order, axis=1))
    return np.concatenate(blocks)


def comparison_rows(
    measured: MeasuredSplit, ways: Sequence[Representation]
) -> list[dict[str, Any]]:
    """Return the rows of the three tables, and the rows of the equity loss without cases."""
    rows: list[dict[str, Any]] = []
    split = measured.split
    with progress_bar("Retrieving", len(ways), show=None) as advance:
        for way in ways:
            position, both = way.positions(split.queries), way.cases(split.cases)
            rows.append(_figures_row(measured, way, position, both))
            rows += [
                _row(measured, way, COMBINED, position, both),
                _row(measured, way, ALONE, position, way.positions(split.cases)),
                # The play that was made hints at the best play: these queries have no loss.
                _row(measured, way, WITH_PLAY, way.with_plays(split.queries), both, losses=False),
            ]
            advance(1)
    return rows + _rows_without_cases(split.queries, ways)


def _figures_row(
    measured: MeasuredSplit, way: Representation, queries: Floats, cases: Floats
) -> dict[str, Any]:
    """Return a representation's figures, means over the labels, with the published figures."""
    order = nearest(measured, queries, cases, NEAREST, same_roll=False)
    own = np.mean(list(figures_by_label(measured, order).values()), axis=0)
    theirs = TABLE_3.get(way.name, (None,) * len(NAMES))
    return {
        "table": FIGURES,
        "compared by": way.name,
        **dict(zip(NAMES, map(float, own), strict=True)),
        **{f"paper {name}": value for name, value in zip(NAMES, theirs, strict=True)},
    }


def _row(
    measured: MeasuredSplit,
    way: Representation,
    table: str,
    queries: Floats,
    cases: Floats,
    *,
    losses: bool = True,
) -> dict[str, Any]:
    order = nearest(measured, queries, cases, NEAREST, same_roll=False)
    shares = {name: float(own[0]) for name, own in figures_by_label(measured, order).items()}
    row = {"table": table, "compared by": way.name, **shares, "mean": mean(list(shares.values()))}
    if losses:
        same = nearest(measured, queries, cases, 1, same_roll=True)
        row["lost"] = lost_by_own(measured, way, order)
        row["lost, same roll"] = lost_by_own(measured, way, same)
        row["near by checkers"] = lost_by_checkers(measured, same)
    return row


def _rows_without_cases(
    queries: Sequence[Decision], ways: Sequence[Representation]
) -> list[dict[str, Any]]:
    lost = {
        "a listed candidate at random": [
            mean([query.lost(rank) for rank in range(len(query.candidates))]) for query in queries
        ],
        "the play that was made": [query.lost(query.played_or_best) for query in queries],
    }
    for way in ways:
        if (network := way.network) is not None:
            lost[f"the network's choice: {way.name}"] = [
                choice_lost(network, query) for query in queries
            ]
    return [{"table": WITHOUT, "chosen by": n, "lost": mean(each)} for n, each in lost.items()]


def figures_by_label(measured: MeasuredSplit, order: Places) -> dict[str, NDArray[np.float64]]:
    """Return the figures of ``NAMES`` by label; a case is relevant if it has the query's label.

    Each value of a label has the same weight, even if it is rare: the precision of random cases is
    1 / (number of values).
    """
    figures = {}
    for name, wanted in measured.query_labels.items():
        known = measured.case_labels[name]
        values, counts = np.unique(known, return_counts=True)
        sizes = dict(zip(values.tolist(), counts.tolist(), strict=True))
        there = np.array([sizes.get(value, 0) for value in wanted.tolist()])
        each = ranking_figures(known[order] == wanted[:, None], there).mean(axis=0)
        some = [each[:, wanted == value].mean(axis=1) for value in np.unique(wanted)]
        figures[name] = np.mean(some, axis=0)
    return figures


def lost_by_own(measured: MeasuredSplit, way: Representation, order: Places) -> float:
    """Return the mean equity loss of the candidate nearest to the case's best play.

    The similarity is the representation's cosine of the positions after the plays.

    Args:
        measured: The queries and cases.
        way: The representation.
        order: The cases of each query; the play of the first case is reused.
    """
    ends = np.cumsum([len(some) for some in measured.afters])
    flat = way.afters([after for some in measured.afters for after in some])
    targets = way.afters([measured.split.cases[case].after(0) for case in order[:, 0]])
    lost = []
    for number, (query, end) in enumerate(zip(measured.split.queries, ends, strict=True)):
        own = flat[end - len(measured.afters[number]) : end]
        lost.append(_lost(query, -(own @ targets[number])))
    return mean(lost)


def lost_by_checkers(measured: MeasuredSplit, order: Places) -> float:
    """Return the mean equity loss with the number of moved checkers as distance."""
    lost = []
    for query, afters, case in zip(
        measured.split.queries, measured.afters, order[:, 0], strict=True
    ):
        target = _counts(measured.split.cases[case].after(0))
        own = np.stack([_counts(after) for after in afters])
        lost.append(_lost(query, np.abs(own - target).sum(axis=1)))
    return mean(lost)


def _lost(query: Decision, far: NDArray[np.float64] | Floats) -> float:
    """Return the equity loss of the nearest candidate, or the mean of equally near candidates.

    The engine's order of the candidates must not decide.
    """
    best = np.flatnonzero(far <= far.min() + _TIE)
    return mean([query.lost(int(rank)) for rank in best])


def _counts(position: Position) -> NDArray[np.float64]:
    return np.array([*position.own, *position.other], dtype=np.float64)
