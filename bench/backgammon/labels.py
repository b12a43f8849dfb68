"""What says that a case is like a query: labels that an engine's analysis gives.

The paper's own labels are of a closed collection. These are of two kinds: what the position is
(the first three), and what its best play does, by the engine (the others), which no query tells.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from casewright.domains.backgammon.decision import Decision
from casewright.domains.backgammon.play_features import PlayFeatures, phase, play_features

#: A lead in pips below, between and above these: five kinds of race.
_LEADS = (-30, -10, 10, 30)
#: GNU Backgammon's classes below a race are its bear-off databases.
_RACE = 8

Label = Callable[[Decision, PlayFeatures], Hashable]


def _engine_class(one: Decision, _: PlayFeatures) -> Hashable:
    known = one.engine_class
    return "bear-off" if known is not None and known < _RACE else known


def _lead(one: Decision, _: PlayFeatures) -> Hashable:
    own, other = one.position.pips
    return int(np.searchsorted(_LEADS, other - own))


def _anchor(_: Decision, play: PlayFeatures) -> Hashable:
    return bool(play.anchors_made), bool(play.anchors_broken)


LABELS: dict[str, Label] = {
    "engine's class": _engine_class,
    "phase": lambda one, _: phase(one.position),
    "race lead": _lead,
    "hits": lambda _, play: play.hits > 0,
    "makes a point": lambda _, play: bool(play.made),
    "anchor": _anchor,
    "back checkers leave": lambda _, play: play.left_back > 0,
    "blots left": lambda _, play: min(len(play.blots), 3),
}
#: Labels of positions; the others are of best plays.
OF_POSITIONS = ("engine's class", "phase", "race lead")


def labels_of(decisions: Sequence[Decision]) -> dict[str, NDArray[np.str_]]:
    """Return the labels of n decisions, an array (n) each."""
    played = [play_features(one.position, one.after(0)) for one in decisions]
    return {
        name: np.array([str(label(*pair)) for pair in zip(decisions, played, strict=True)])
        for name, label in LABELS.items()
    }
