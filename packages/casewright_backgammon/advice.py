"""Reuse of cases: the legal play whose resulting position is most similar to a case's."""

from __future__ import annotations

from collections.abc import Sequence

from casewright_backgammon.decision import Decision
from casewright_backgammon.latent import PositionNetwork
from casewright_backgammon.moves import Play
from casewright_mcbr.layers import unit_rows


def most_similar_plays(
    plays: Sequence[Play], cases: Sequence[Decision], network: PositionNetwork
) -> list[Play]:
    """Return for each case the legal play in ``plays`` that is most similar to its best play.

    The similarity of two plays is the cosine of the latents of the positions after them, from the
    side of the player who is then on roll (``casewright bench backgammon`` measures it).
    """
    if not cases:
        return []
    legal, best = (
        unit_rows(network.latents([after.flipped for after in afters]))
        for afters in ([play.after for play in plays], [case.after(0) for case in cases])
    )
    return [plays[int(index)] for index in (best @ legal.T).argmax(axis=1)]
