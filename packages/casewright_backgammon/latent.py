"""The position network: from a position to its latent (a vector of 64 numbers) and its equity.

The network is the function L of MCBR-RAG (Marom 2024, section 5.2). It was trained on two tasks: to
predict, from the latent, the position's chances (called its value) and TD-Gammon's encoding of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from casewright_backgammon.decision import chances_after_win
from casewright_backgammon.encoding import INPUT_COUNT, encode
from casewright_backgammon.position import Position
from casewright_mcbr.layers import (
    LATENT_SIZE,
    Floats,
    Layer,
    forward,
    other_network_error,
    read_arrays,
    write_arrays,
)

#: Number of chances of a position; see ``decision.Chances``.
CHANCE_COUNT = 5
#: The file of the shipped network.
NETWORK_FILE = Path(__file__).parent / "weights" / "latent.npz"
#: The fields of ``PositionNetwork`` that are layers.
_LAYERS = ("hidden", "latent", "value")


@dataclass(frozen=True, slots=True)
class PositionNetwork:
    """A position network without its decoder, as NumPy arrays."""

    hidden: Layer  # the layer from the encoding to the hidden units
    latent: Layer  # the layer from the hidden units (after ReLU) to the latent
    value: Layer  # the layer from the latent (after ReLU) to logits of the chances
    name: str  # a name that contains the weight of the value's loss, and the seed

    def latents(self, positions: Sequence[Position]) -> Floats:
        """Return the latents of n positions, array (n, 64), not scaled to length 1."""
        return forward(encode(positions), (self.hidden, self.latent))

    def chances(self, positions: Sequence[Position]) -> Floats:
        """Return the chances of each position's player on roll before the roll, array (n, 5)."""
        logits = forward(encode(positions), (self.hidden, self.latent, self.value))
        return np.asarray(1 / (1 + np.exp(-logits)), dtype=np.float32)

    def equities(self, positions: Sequence[Position]) -> Floats:
        """Return the equities (n) of the player on roll before the roll, without a cube."""
        return equity(self.chances(positions))

    def after_equities(self, afters: Sequence[Position]) -> Floats:
        """Return the equities (n) of the players whose plays led to the positions ``afters``."""
        equities = -self.equities([after.flipped for after in afters])
        for index, after in enumerate(afters):
            if not any(after.own):  # the game is over
                equities[index] = sum(chances_after_win(after))
        return equities

    def save(self, file: Path) -> None:
        """Write the network to a NumPy archive."""
        arrays = {
            f"{name}_{part}": array
            for name in _LAYERS
            for part, array in zip(("weight", "bias"), getattr(self, name), strict=True)
        }
        write_arrays(file, {"name": self.name, **arrays})


def equity(chances: Floats) -> Floats:
    """Return the equities (n) of chances (n, 5); a gammon counts 2, a backgammon 3."""
    win, win_g, win_bg, lose_g, lose_bg = chances.T
    return np.asarray(2 * win - 1 + win_g + win_bg - lose_g - lose_bg, dtype=np.float32)


def mean_latents(before: Floats, after: Floats) -> Floats:
    """Return the latents of decisions: means of the latents (n, 64) before and after the play.

    The positions are from the side of the player who makes the play. As in the paper, the latents
    are not scaled before the mean; the store scales the means to length 1.
    """
    return np.asarray((before + after) / 2, dtype=np.float32)


def load_network(file: Path = NETWORK_FILE) -> PositionNetwork:
    """Return a file's network; raise ``InputError`` for a missing file or unexpected arrays."""
    arrays = read_arrays(file, "network of positions", "backgammon")
    try:
        layers = [(arrays[f"{name}_weight"], arrays[f"{name}_bias"]) for name in _LAYERS]
        hidden, latent, value = layers
        network = PositionNetwork(hidden, latent, value, str(arrays["name"]))
        shapes = hidden[0].shape[1], latent[0].shape[0], value[0].shape
        fits = shapes == (INPUT_COUNT, LATENT_SIZE, (CHANCE_COUNT, LATENT_SIZE))
    except (KeyError, IndexError):
        fits = False
    if not fits:
        raise other_network_error(file, "backgammon")
    return network


@cache
def shipped_network() -> PositionNetwork:
    """Return the shipped network."""
    return load_network()
