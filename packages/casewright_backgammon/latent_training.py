"""Training of the multi-task network: what positions are worth, and their encoding again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from casewright_backgammon.decision import Chances, Decision, value_of
from casewright_backgammon.encoding import encode
from casewright_backgammon.latent import PositionNetwork
from casewright_backgammon.position import Position, position_of_id
from casewright.errors import InputError

if TYPE_CHECKING:
    from torch import nn

#: Weights of value and decoder in the loss, those that the paper tries (MCBR-RAG, section 5.2).
WEIGHTS = ((0, 1), (1, 0), (1, 1), (1, 0.1), (1, 0.01), (1, 0.001), (1, 0.0001))
#: Chosen on training games alone.
WIDTH, EPOCHS, BATCH, RATE, DECAY = 512, 20, 512, 2e-3, 1e-4
#: The two losses are of like size with these.
VALUE_SCALE, DECODER_SCALE = 4.0, 10.0


@dataclass(frozen=True, slots=True)
class Examples:
    """Positions with what they are worth.

    Attributes:
        encoded: Array (n, 198).
        chances: Of the player on roll, array (n, 5).
    """

    encoded: NDArray[np.float32]
    chances: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.encoded)

    def shuffled(self, seed: int) -> Examples:
        """Return the same with the worth of another position for each: a control."""
        order = np.random.default_rng(seed).permutation(len(self))
        return Examples(self.encoded, self.chances[order])


def examples_of(
    decisions: Sequence[Decision], more: Sequence[tuple[Position, Chances]] = ()
) -> Examples:
    """Return the positions of decisions before the roll and after each candidate, with their worth.

    Args:
        decisions: Those without a value have their candidates alone.
        more: Positions of a pool, with the chances of the player on roll.
    """
    positions: list[Position] = []
    chances: list[Chances] = []
    for one in decisions:
        if one.value is not None:
            positions.append(one.position)
            chances.append(one.value)
        for place, candidate in enumerate(one.candidates):
            after = one.after(place)
            # Where the game is over nothing is left to value.
            if any(after.own):
                positions.append(after.flipped)
                chances.append(other_side(candidate.chances))
    for position, known in more:
        positions.append(position)
        chances.append(known)
    return Examples(encode(positions), np.array(chances, dtype=np.float32))


def other_side(chances: Chances) -> Chances:
    """Return the chances of the other player."""
    win, win_g, win_bg, lose_g, lose_bg = chances
    return 1 - win, lose_g, lose_bg, win_g, win_bg


def read_pool(file: Path) -> list[tuple[Position, Chances]]:
    """Return the positions of a file with one and its value as JSON a line.

    Raises:
        InputError: The file cannot be read, or a line is none; names the line.
    """
    found = []
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {type(error).__name__}.") from error
    for number, line in enumerate(lines, 1):
        try:
            read = json.loads(line)
            chances, _ = value_of(read["value"])
            if chances is None:
                raise ValueError("no value")
            found.append((position_of_id(read["position_id"]), chances))
        except (InputError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"{file}, line {number}, is no valued position: {error}") from None
    return found


def train_network(
    examples: Examples, weighting: float, *, seed: int = 0, epochs: int = EPOCHS
) -> PositionNetwork:
    """Train the network with one weighting of its two tasks.

    Args:
        examples: What is learned from.
        weighting: Share of the value in the loss, from 0 to 1.
        seed: Of the weights and of the order; the same gives the same network on one machine.
        epochs: How often each position is seen; some 3 seconds each for 100,000 on one core.
    """
    import torch
    from torch.nn import functional

    from casewright_backgammon.latent_network import MultiTaskNetwork

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = MultiTaskNetwork(WIDTH)
        encoded, chances = torch.tensor(examples.encoded), torch.tensor(examples.chances)
        optimizer = torch.optim.AdamW(network.parameters(), RATE, weight_decay=DECAY)
        steps = epochs * -(-len(examples) // BATCH)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        for _ in range(epochs):
            for batch in torch.randperm(len(examples)).split(BATCH):
                value, decoded = network(encoded[batch])
                worth = functional.binary_cross_entropy_with_logits(value, chances[batch])
                again = functional.mse_loss(decoded, encoded[batch])
                loss = weighting * VALUE_SCALE * worth + (1 - weighting) * DECODER_SCALE * again
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
    return PositionNetwork(
        _arrays(network.hidden),
        _arrays(network.latent),
        _arrays(network.value),
        f"backgammon-{weighting:g}-{seed}",
    )


def _arrays(layer: nn.Linear) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    return layer.weight.detach().numpy().copy(), layer.bias.detach().numpy().copy()
