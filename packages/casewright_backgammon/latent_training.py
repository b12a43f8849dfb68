"""Training of the position network on two tasks: to predict values and encodings of positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright_backgammon.decision import (
    Chances,
    Decision,
    flipped_chances,
    parse_position_analysis,
    read_lines,
)
from casewright_backgammon.encoding import encode
from casewright_backgammon.latent import PositionNetwork
from casewright_backgammon.position import Position, position_of_id
from casewright_mcbr.training import arrays_of, seeded, step

#: The paper's weights of the two losses, the value's and the decoder's (MCBR-RAG, section 5.2).
#: For ``train_network``, they are scaled to the sum 1.
WEIGHTS = ((0, 1), (1, 0), (1, 1), (1, 0.1), (1, 0.01), (1, 0.001), (1, 0.0001))
#: Number of hidden units, of epochs, and of examples in a batch; chosen on training games.
WIDTH, EPOCHS, BATCH_SIZE = 512, 20, 512
#: Learning rate and weight decay; chosen on training games.
RATE, DECAY = 2e-3, 1e-4
#: Factors that bring the value's loss and the decoder's loss to a similar size.
VALUE_SCALE, DECODER_SCALE = 4.0, 10.0


@dataclass(frozen=True, slots=True)
class Examples:
    """Encoded positions (n, 198), with the chances of the player on roll (n, 5)."""

    encoded: NDArray[np.float32]
    chances: NDArray[np.float32]

    def shuffled(self, seed: int) -> Examples:
        """Return the same positions with shuffled chances, to train a control network."""
        order = np.random.default_rng(seed).permutation(len(self.encoded))
        return Examples(self.encoded, self.chances[order])


def examples_of(
    decisions: Sequence[Decision], pool: Sequence[tuple[Position, Chances]] = ()
) -> Examples:
    """Return examples of positions: in a pool, in decisions, and after the decisions' candidates.

    A decision's own position is left out if its chances before the roll are unknown.
    """
    positions: list[Position] = []
    chances: list[Chances] = []
    for decision in decisions:
        if decision.chances_before_roll is not None:
            positions.append(decision.position)
            chances.append(decision.chances_before_roll)
        for rank, candidate in enumerate(decision.candidates):
            after = decision.after(rank)
            # The values of finished games are known, so the network need not learn them.
            if any(after.own):
                positions.append(after.flipped)
                chances.append(flipped_chances(candidate.chances))
    for position, pool_chances in pool:
        positions.append(position)
        chances.append(pool_chances)
    return Examples(encode(positions), np.array(chances, dtype=np.float32))


def read_pool(file: Path) -> list[tuple[Position, Chances]]:
    """Return a JSON Lines file's positions and their chances; see ``read_lines`` for errors."""
    return read_lines(file, _parse_pool_row)


def _parse_pool_row(row: dict[str, Any]) -> tuple[Position, Chances]:
    chances, _ = parse_position_analysis(row["value"])
    if chances is None:
        raise ValueError("the position has no value")
    return position_of_id(row["position_id"]), chances


def train_network(
    examples: Examples, value_weight: float, *, seed: int = 0, epochs: int = EPOCHS
) -> PositionNetwork:
    """Train a network; an epoch of 100,000 examples takes about 3 seconds on one core.

    ``value_weight`` is the weight of the value's loss, from 0 to 1; the decoder's loss has the
    weight 1 minus ``value_weight``. The same seed gives the same network on one machine.
    """
    import torch
    from torch.nn import functional

    from casewright_backgammon.latent_network import MultiTaskNetwork

    with seeded(seed):
        network = MultiTaskNetwork(WIDTH)
        encoded, chances = torch.tensor(examples.encoded), torch.tensor(examples.chances)
        optimizer = torch.optim.AdamW(network.parameters(), RATE, weight_decay=DECAY)
        steps = epochs * -(-len(encoded) // BATCH_SIZE)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        for _ in range(epochs):
            for batch in torch.randperm(len(encoded)).split(BATCH_SIZE):
                logits, decoded = network(encoded[batch])
                value_loss = functional.binary_cross_entropy_with_logits(logits, chances[batch])
                decoder_loss = functional.mse_loss(decoded, encoded[batch])
                loss = value_weight * VALUE_SCALE * value_loss
                loss += (1 - value_weight) * DECODER_SCALE * decoder_loss
                step(loss, optimizer, schedule)
    return PositionNetwork(
        arrays_of(network.hidden),
        arrays_of(network.latent),
        arrays_of(network.value),
        f"backgammon-{value_weight:g}-{seed}",
    )
