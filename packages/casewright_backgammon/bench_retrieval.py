"""How like the nearest cases are, and what playing as the nearest one did would lose: Table 3.

What decisions are compared by is the encoding, the seven latents, and controls. Labels that an
engine's analysis gives say that a case is like a query; the paper's own are of a closed collection.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.bench.harness import mean
from casewright_mcbr.ranking import KS, NAMES, ranking_figures
from casewright_backgammon.decision import Decision
from casewright_backgammon.encoding import encode
from casewright_backgammon.games import Split
from casewright_backgammon.latent import UNITS, PositionNetwork, combined
from casewright_backgammon.latent_training import (
    EPOCHS,
    WEIGHTS,
    examples_of,
    train_network,
)
from casewright_backgammon.play_features import PlayFeatures, phase, play_features
from casewright_backgammon.position import Position
from casewright_backgammon.training import choice_lost
from casewright.stores.progress import progress_bar

ENCODING = "encoding"
SHUFFLED = "control: latent (1, 0), worth shuffled"
RANDOM = "control: random numbers"
#: The tables: what a query is, what a case is.
COMBINED = "3: a query is its position, a case the mean of before and after its best play"
ALONE = "3: a query is its position, a case its position"
WITH_PLAY = "3: a query is the mean of before and after the play that was made, a case as well"
WITHOUT = "without cases"
FIGURES = "3: mean over the labels, beside the paper's"
#: Nearest cases that labels are asked of; a figure is the mean over 1, 2, … of them.
NEAREST = KS[-1]
#: The paper's Table 3, in the order of ``NAMES``: cases of its collection by their chapters.
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
#: Queries whose similarities to all cases are held at a time.
_BLOCK = 256
#: Plays so near to each other are equally near.
_TIE = 1e-6
#: A lead in pips below, between and above these: five kinds of race.
_LEADS = (-30, -10, 10, 30)
#: GNU Backgammon's classes below a race are its bear-off databases.
_RACE = 8

Floats = NDArray[np.float32]
Places = NDArray[np.intp]
#: Raw vectors of positions, array (n, units).
Embed = Callable[[Sequence[Position]], Floats]


def _engine_class(one: Decision, _: PlayFeatures) -> Hashable:
    known = one.engine_class
    return "bear-off" if known is not None and known < _RACE else known


def _lead(one: Decision, _: PlayFeatures) -> Hashable:
    own, other = one.position.pips
    return int(np.searchsorted(_LEADS, other - own))


LABELS: dict[str, Callable[[Decision, PlayFeatures], Hashable]] = {
    "engine's class": _engine_class,
    "phase": lambda one, _: phase(one.position),
    "race lead": _lead,
    "hits": lambda _, play: play.hits > 0,
    "makes a point": lambda _, play: bool(play.made),
    "anchor": lambda _, play: (bool(play.anchors_made), bool(play.anchors_broken)),
    "back checkers leave": lambda _, play: play.left_back > 0,
    "blots left": lambda _, play: min(len(play.blots), 3),
}
#: Labels of positions; the others are of best plays, by the engine, which no query tells.
OF_POSITIONS = ("engine's class", "phase", "race lead")


def labels_of(decisions: Sequence[Decision]) -> dict[str, NDArray[np.str_]]:
    """Return the labels of n decisions, an array (n) each."""
    played = [play_features(one.position, one.after(0)) for one in decisions]
    return {
        name: np.array([str(label(*pair)) for pair in zip(decisions, played, strict=True)])
        for name, label in LABELS.items()
    }


def latent_name(value: float, decoder: float) -> str:
    """Return how a latent is called in the tables, by its weights of value and decoder."""
    return f"latent ({value:g}, {decoder:g})"


@dataclass(frozen=True, slots=True)
class Representation:
    """One way to compare decisions.

    Attributes:
        name: As the tables call it.
        embed: Makes raw vectors; those of the methods are of length 1.
        network: What told them; ``None`` for others.
    """

    name: str
    embed: Embed
    network: PositionNetwork | None = None

    def cases(self, decisions: Sequence[Decision]) -> Floats:
        """Return cases: positions before and after the best play, together."""
        return self._both(decisions, [one.after(0) for one in decisions])

    def positions(self, decisions: Sequence[Decision]) -> Floats:
        """Return the positions alone: what a query without a play is."""
        return _unit(self.embed([one.position for one in decisions]))

    def with_plays(self, decisions: Sequence[Decision]) -> Floats:
        """Return positions before and after the play that was made, together."""
        return self._both(decisions, [one.after(one.played_or_best) for one in decisions])

    def afters(self, positions: Sequence[Position]) -> Floats:
        """Return positions after a play, from the side then on roll."""
        return _unit(self.embed([one.flipped for one in positions]))

    def _both(self, decisions: Sequence[Decision], afters: Sequence[Position]) -> Floats:
        before = self.embed([one.position for one in decisions])
        return _unit(combined(before, self.embed(afters)))


def _unit(vectors: Floats) -> Floats:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), dtype=np.float32)


def representations(
    split: Split, *, epochs: int = EPOCHS, advance: Callable[[int], None] = lambda _: None
) -> list[Representation]:
    """Return each way to compare decisions; networks are trained on a split's cases and pool."""
    known = examples_of(split.cases, split.pool)
    trained = [(latent_name(*pair), known, pair[0] / sum(pair)) for pair in WEIGHTS]
    made = [Representation(ENCODING, encode)]
    for name, examples, weighting in [*trained, (SHUFFLED, known.shuffled(0), 1.0)]:
        network = train_network(examples, weighting, epochs=epochs)
        made.append(Representation(name, network.latents, network))
        advance(1)
    rng = np.random.default_rng(0)

    def drawn(positions: Sequence[Position]) -> Floats:
        return rng.standard_normal((len(positions), UNITS)).astype(np.float32)

    return [*made, Representation(RANDOM, drawn)]


@dataclass(frozen=True)
class Asked:
    """Queries and cases with what every representation is measured by."""

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
        """The rolls of queries and of cases, a number each."""
        return _rolls(self.split.queries), _rolls(self.split.cases)

    @cached_property
    def afters(self) -> list[list[Position]]:
        """Where the candidates of each query lead."""
        return [
            [one.after(place) for place in range(len(one.candidates))] for one in self.split.queries
        ]


def _rolls(decisions: Sequence[Decision]) -> NDArray[np.int64]:
    return np.array([10 * min(one.dice) + max(one.dice) for one in decisions])


def nearest(asked: Asked, queries: Floats, cases: Floats, count: int, *, same_roll: bool) -> Places:
    """Return each query's nearest cases by cosine, array (queries, count), the best first.

    A query's own game and its own position are not among the cases: the split sees to it.

    Args:
        asked: The queries and cases.
        queries: Vectors of length 1, array (queries, units).
        cases: The same, array (cases, units).
        count: How many.
        same_roll: Whether only cases of the query's roll are looked at.
    """
    own, others = asked.rolls
    found = []
    for start in range(0, len(queries), _BLOCK):
        likeness = queries[start : start + _BLOCK] @ cases.T
        if same_roll:
            likeness[own[start : start + _BLOCK, None] != others] = -np.inf
        top = np.argpartition(-likeness, count - 1, axis=1)[:, :count]
        order = np.argsort(-np.take_along_axis(likeness, top, axis=1), axis=1, kind="stable")
        found.append(np.take_along_axis(top, order, axis=1))
    return np.concatenate(found)


def comparison_rows(asked: Asked, ways: Sequence[Representation]) -> list[dict[str, Any]]:
    """Return the rows of the three tables, and of what is lost without cases."""
    rows: list[dict[str, Any]] = []
    split = asked.split
    with progress_bar("Retrieving", len(ways), show=None) as advance:
        for way in ways:
            position, both = way.positions(split.queries), way.cases(split.cases)
            rows.append(_figures_row(asked, way, position, both))
            rows += [
                _row(asked, way, COMBINED, position, both),
                _row(asked, way, ALONE, position, way.positions(split.cases)),
                # What the human played tells what is best: no loss is asked of these queries.
                _row(asked, way, WITH_PLAY, way.with_plays(split.queries), both, losses=False),
            ]
            advance(1)
    return rows + _rows_without_cases(split.queries, ways)


def _figures_row(
    asked: Asked, way: Representation, queries: Floats, cases: Floats
) -> dict[str, Any]:
    """Return a representation's figures, means over the labels, beside those published."""
    order = nearest(asked, queries, cases, NEAREST, same_roll=False)
    own = np.mean(list(figures_by_label(asked, order).values()), axis=0)
    theirs = TABLE_3.get(way.name, (None,) * len(NAMES))
    return {
        "table": FIGURES,
        "compared by": way.name,
        **dict(zip(NAMES, map(float, own), strict=True)),
        **{f"paper {name}": told for name, told in zip(NAMES, theirs, strict=True)},
    }


def _row(
    asked: Asked,
    way: Representation,
    table: str,
    queries: Floats,
    cases: Floats,
    *,
    losses: bool = True,
) -> dict[str, Any]:
    order = nearest(asked, queries, cases, NEAREST, same_roll=False)
    shares = {name: float(own[0]) for name, own in figures_by_label(asked, order).items()}
    row = {"table": table, "compared by": way.name, **shares, "mean": mean(list(shares.values()))}
    if losses:
        same = nearest(asked, queries, cases, 1, same_roll=True)
        row["lost"] = lost_by_own(asked, way, order)
        row["lost, same roll"] = lost_by_own(asked, way, same)
        row["near by checkers"] = lost_by_checkers(asked, same)
    return row


def _rows_without_cases(
    queries: Sequence[Decision], ways: Sequence[Representation]
) -> list[dict[str, Any]]:
    lost = {
        "a listed candidate at random": [
            mean([one.lost(place) for place in range(len(one.candidates))]) for one in queries
        ],
        "the play that was made": [one.lost(one.played_or_best) for one in queries],
    }
    for way in ways:
        if (network := way.network) is not None:
            lost[f"the network's choice: {way.name}"] = [
                choice_lost(network, one) for one in queries
            ]
    return [{"table": WITHOUT, "chosen by": n, "lost": mean(each)} for n, each in lost.items()]


def figures_by_label(asked: Asked, order: Places) -> dict[str, NDArray[np.float64]]:
    """Return by label the figures of ``NAMES``: whether the nearest cases have the query's.

    Each value of a label counts as much as another, however rare it is, so that of what is drawn at
    random the precision is 1 / (number of values).
    """
    found = {}
    for name, wanted in asked.query_labels.items():
        known = asked.case_labels[name]
        values, counts = np.unique(known, return_counts=True)
        sizes = dict(zip(values.tolist(), counts.tolist(), strict=True))
        there = np.array([sizes.get(value, 0) for value in wanted.tolist()])
        each = ranking_figures(known[order] == wanted[:, None], there).mean(axis=0)
        some = [each[:, wanted == value].mean(axis=1) for value in np.unique(wanted)]
        found[name] = np.mean(some, axis=0)
    return found


def lost_by_own(asked: Asked, way: Representation, order: Places) -> float:
    """Return the equity lost by the candidate that leads nearest to where the case's best play did.

    Near is meant as the representation means it: by the cosine of the positions after the plays.

    Args:
        asked: The queries and cases.
        way: The representation.
        order: Each query's cases; the first is followed.
    """
    ends = np.cumsum([len(some) for some in asked.afters])
    flat = way.afters([one for some in asked.afters for one in some])
    targets = way.afters([asked.split.cases[place].after(0) for place in order[:, 0]])
    lost = []
    for number, (query, end) in enumerate(zip(asked.split.queries, ends, strict=True)):
        own = flat[end - len(asked.afters[number]) : end]
        lost.append(_lost(query, -(own @ targets[number])))
    return mean(lost)


def lost_by_checkers(asked: Asked, order: Places) -> float:
    """Return the same, where near is how few checkers stand elsewhere: alike for all ways."""
    lost = []
    for query, afters, place in zip(asked.split.queries, asked.afters, order[:, 0], strict=True):
        target = _counts(asked.split.cases[place].after(0))
        own = np.stack([_counts(one) for one in afters])
        lost.append(_lost(query, np.abs(own - target).sum(axis=1)))
    return mean(lost)


def _lost(query: Decision, far: NDArray[np.float64] | Floats) -> float:
    """Return what the nearest candidate loses, the mean of those that are equally near.

    The candidates' order, which is the engine's, must have no say.
    """
    best = np.flatnonzero(far <= far.min() + _TIE)
    return mean([query.lost(int(place)) for place in best])


def _counts(position: Position) -> NDArray[np.float64]:
    return np.array([*position.own, *position.other], dtype=np.float64)
