"""How like the nearest cases are, by labels, and what playing as the nearest one did would lose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from casewright.bench.backgammon.labels import labels_of
from casewright.bench.backgammon.represent import Representation
from casewright.domains.backgammon.decision import Decision
from casewright.domains.backgammon.games import Split
from casewright.domains.backgammon.position import Position

#: Nearest cases that labels are asked of; a precision is the mean over 1, 2, … of them.
NEAREST = 5
#: Queries whose similarities to all cases are held at a time.
_BLOCK = 256
#: Plays so near to each other are equally near.
_TIE = 1e-6

Floats = NDArray[np.float32]
Places = NDArray[np.intp]


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


def precisions(asked: Asked, order: Places) -> dict[str, float]:
    """Return by label how often the nearest cases have the query's: mean over 1 to 5 of them.

    Each value of a label counts as much as another, however rare it is, so that what is drawn at
    random has 1 / (number of values).
    """
    found = {}
    weights = np.cumsum(1 / np.arange(NEAREST, 0, -1))[::-1] / NEAREST
    for name, wanted in asked.query_labels.items():
        same = asked.case_labels[name][order] == wanted[:, None]
        each = same @ weights
        found[name] = float(np.mean([each[wanted == value].mean() for value in np.unique(wanted)]))
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
    return float(np.mean(lost))


def lost_by_checkers(asked: Asked, order: Places) -> float:
    """Return the same, where near is how few checkers stand elsewhere: alike for all ways."""
    lost = []
    for number, query in enumerate(asked.split.queries):
        target = _counts(asked.split.cases[order[number, 0]].after(0))
        own = np.stack([_counts(one) for one in asked.afters[number]])
        lost.append(_lost(query, np.abs(own - target).sum(axis=1)))
    return float(np.mean(lost))


def _lost(query: Decision, far: NDArray[np.float64] | Floats) -> float:
    """Return what the nearest candidate loses, the mean of those that are equally near.

    The candidates' order, which is the engine's, must have no say.
    """
    best = np.flatnonzero(far <= far.min() + _TIE)
    return float(np.mean([query.lost(int(place)) for place in best]))


def _counts(position: Position) -> NDArray[np.float64]:
    return np.array([*position.own, *position.other], dtype=np.float64)


def _rolls(decisions: Sequence[Decision]) -> NDArray[np.int64]:
    return np.array([10 * min(one.dice) + max(one.dice) for one in decisions])
