"""What decisions are compared by: the encoding, the seven latents, and controls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casewright.domains.backgammon.decision import Decision
from casewright.domains.backgammon.encoding import encode
from casewright.domains.backgammon.games import Split
from casewright.domains.backgammon.latent import UNITS, PositionNetwork, combined
from casewright.domains.backgammon.latent_training import (
    EPOCHS,
    WEIGHTINGS,
    examples_of,
    train_network,
)
from casewright.domains.backgammon.position import Position

ENCODING = "encoding"
SHUFFLED = "control: latent, value 1, worth shuffled"
RANDOM = "control: random numbers"

Floats = NDArray[np.float32]
#: Raw vectors of positions, array (n, units).
Embed = Callable[[Sequence[Position]], Floats]


def latent_name(weighting: float) -> str:
    """Return how a latent is called in the tables."""
    return f"latent, value {weighting:g}"


@dataclass(frozen=True, slots=True)
class Representation:
    """One way to compare decisions.

    Attributes:
        name: As the tables call it.
        embed: Makes raw vectors.
        network: What told them; ``None`` for others.
    """

    name: str
    embed: Embed
    network: PositionNetwork | None = None

    def cases(self, decisions: Sequence[Decision]) -> Floats:
        """Return cases: positions before and after the best play, together; of length 1."""
        before = self.embed([one.position for one in decisions])
        return unit(combined(before, self.embed([one.after(0) for one in decisions])))

    def positions(self, decisions: Sequence[Decision]) -> Floats:
        """Return the positions alone, of length 1: what a query without a play is."""
        return unit(self.embed([one.position for one in decisions]))

    def with_plays(self, decisions: Sequence[Decision]) -> Floats:
        """Return positions before and after the play that was made, together; of length 1."""
        before = self.embed([one.position for one in decisions])
        after = self.embed([one.after(one.played_or_best) for one in decisions])
        return unit(combined(before, after))

    def afters(self, positions: Sequence[Position]) -> Floats:
        """Return positions after a play, of length 1, from the side then on roll."""
        return unit(self.embed([one.flipped for one in positions]))


def representations(
    split: Split, *, epochs: int = EPOCHS, advance: Callable[[int], None] = lambda _: None
) -> list[Representation]:
    """Return each way to compare decisions; networks are trained on a split's cases and pool."""
    known = examples_of(split.cases, split.pool)
    made = [Representation(ENCODING, encode)]
    for weighting in WEIGHTINGS:
        made.append(
            _of_network(latent_name(weighting), train_network(known, weighting, epochs=epochs))
        )
        advance(1)
    made.append(_of_network(SHUFFLED, train_network(known.shuffled(0), 1.0, epochs=epochs)))
    advance(1)
    projection = np.random.default_rng(0)
    return [*made, Representation(RANDOM, lambda some: _random(projection, len(some)))]


def unit(vectors: Floats) -> Floats:
    """Return vectors of length 1."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), dtype=np.float32)


def _of_network(name: str, network: PositionNetwork) -> Representation:
    return Representation(name, network.latents, network)


def _random(rng: np.random.Generator, count: int) -> Floats:
    return rng.standard_normal((count, UNITS)).astype(np.float32)
