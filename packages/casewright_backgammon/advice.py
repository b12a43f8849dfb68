"""Advice from cases: the legal play whose result is nearest to the result of a case's best play."""

from __future__ import annotations

from collections.abc import Sequence

from casewright_backgammon.decision import Decision
from casewright_backgammon.latent import PositionNetwork
from casewright_backgammon.moves import Play
from casewright_backgammon.position import Position
from casewright_mcbr.layers import Floats, unit_rows


def carried_over(
    plays: Sequence[Play], cases: Sequence[Decision], network: PositionNetwork
) -> list[Play]:
    """Return the legal play that is nearest to the best play of each case.

    The similarity of two plays is the cosine of the latents of the positions after them, from the
    side of the player then on roll (``casewright bench backgammon`` measures it).

    Args:
        plays: All legal plays; at least one.
        cases: The analysed decisions.
        network: The network that computes the latents.
    """
    if not cases:
        return []
    own = _units(network, [play.after for play in plays])
    theirs = _units(network, [case.after(0) for case in cases])
    return [plays[int(index)] for index in (theirs @ own.T).argmax(axis=1)]


def _units(network: PositionNetwork, afters: Sequence[Position]) -> Floats:
    return unit_rows(network.latents([after.flipped for after in afters]))
