"""What cases advise: the legal play that leads nearest to where a case's best play led."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from casewright_backgammon.decision import Decision
from casewright_backgammon.latent import PositionNetwork
from casewright_backgammon.moves import Play
from casewright_backgammon.position import Position


def carried_over(
    plays: Sequence[Play], cases: Sequence[Decision], network: PositionNetwork
) -> list[Play]:
    """Return for each case the play that follows its best one most closely.

    Near is meant by the cosine of latents of the positions after the plays, seen by the player who
    is then on roll: what ``casewright bench backgammon`` measures.

    Args:
        plays: The legal ones; at least one.
        cases: Whose best plays are followed.
        network: Makes the latents.
    """
    if not cases:
        return []
    own = _units(network, [play.after for play in plays])
    theirs = _units(network, [case.after(0) for case in cases])
    return [plays[int(place)] for place in (theirs @ own.T).argmax(axis=1)]


def _units(network: PositionNetwork, afters: Sequence[Position]) -> np.ndarray:
    vectors = network.latents([one.flipped for one in afters])
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12))
