"""L: positions as the 64 numbers of a trained network, and what that network thinks of them.

MCBR-RAG (Marom 2024, section 5.2): a multi-task network reads TD-Gammon's encoding of a position
and tells what it is worth and, from the same 64 numbers, the encoding again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from casewright_backgammon.decision import won_chances
from casewright_backgammon.encoding import INPUTS, encode
from casewright_backgammon.position import Position
from casewright.errors import InputError

#: Numbers of a latent.
UNITS = 64
#: Chances that a network tells; see ``decision.Chances``.
CHANCES = 5
FILE = Path(__file__).parent / "weights" / "latent.npz"

Floats = NDArray[np.float32]
#: Weights (out, in) and biases (out) of a dense layer.
Layer = tuple[Floats, Floats]


@dataclass(frozen=True, slots=True)
class PositionNetwork:
    """A network that was trained on the worth of positions, as plain arrays.

    Attributes:
        hidden: From the encoding; what is below 0 becomes 0.
        latent: From the hidden numbers.
        value: From the latent, below 0 set to 0, to logits of the chances.
        name: Tells it from others that were trained otherwise.
    """

    hidden: Layer
    latent: Layer
    value: Layer
    name: str

    def latents(self, positions: Sequence[Position]) -> Floats:
        """Return the raw latents of n positions, array (n, 64), not scaled."""
        return self.of_encoded(encode(positions))

    def of_encoded(self, encoded: Floats) -> Floats:
        """Return the raw latents of encoded positions (n, 198), array (n, 64)."""
        return _dense(np.maximum(_dense(encoded, self.hidden), 0), self.latent)

    def chances(self, positions: Sequence[Position]) -> Floats:
        """Return the chances of the player on roll in n positions before the roll, (n, 5)."""
        logits = _dense(np.maximum(self.latents(positions), 0), self.value)
        return np.asarray(1 / (1 + np.exp(-logits)), dtype=np.float32)

    def equities(self, positions: Sequence[Position]) -> Floats:
        """Return the equities of the player on roll before the roll, without a cube, array (n)."""
        return equity(self.chances(positions))

    def after_equities(self, afters: Sequence[Position]) -> Floats:
        """Return what positions after a play are worth to the player who made it, array (n).

        Args:
            afters: From that player's side; the other one is on roll.
        """
        worth = -self.equities([one.flipped for one in afters])
        # A game that is over is worth what it is, and no network needs to say so.
        over = [_won(one) for one in afters]
        return np.array(
            [made if won is None else won for made, won in zip(worth, over, strict=True)],
            dtype=np.float32,
        )

    def save(self, file: Path) -> None:
        """Write it as one file of arrays."""
        arrays: dict[str, Any] = {}
        for name in ("hidden", "latent", "value"):
            arrays[f"{name}_weight"], arrays[f"{name}_bias"] = getattr(self, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("wb") as target:
            np.savez(target, name=np.array(self.name), **arrays)


def equity(chances: Floats) -> Floats:
    """Return equities from chances (n, 5): games won less lost, a gammon twice, array (n)."""
    win, win_g, win_bg, lose_g, lose_bg = chances.T
    return np.asarray(2 * win - 1 + win_g + win_bg - lose_g - lose_bg, dtype=np.float32)


def combined(before: Floats, after: Floats | None) -> Floats:
    """Return the latent of a decision: the mean of the raw latents before and after the play.

    The store scales it to length 1, so the mean is of raw latents, as in the paper.

    Args:
        before: Raw latents of the positions, array (n, 64).
        after: The same after the play, from the same side; ``None`` where no play is told.
    """
    return before if after is None else np.asarray((before + after) / 2, dtype=np.float32)


def load_network(file: Path = FILE) -> PositionNetwork:
    """Read a network.

    Raises:
        InputError: The file is not there, or holds something else.
    """
    try:
        with np.load(file, allow_pickle=False) as read:
            hidden, latent, value = (
                (read[f"{name}_weight"], read[f"{name}_bias"])
                for name in ("hidden", "latent", "value")
            )
            found = PositionNetwork(hidden, latent, value, str(read["name"]))
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        raise InputError(
            f"{file} holds no network of positions. Train it: casewright finetune backgammon"
        ) from error
    if (hidden[0].shape[1], latent[0].shape[0], value[0].shape) != (
        INPUTS,
        UNITS,
        (CHANCES, UNITS),
    ):
        raise InputError(f"{file} is of another network. Train it: casewright finetune backgammon")
    return found


@cache
def shipped_network() -> PositionNetwork:
    """Return the network that ships."""
    return load_network()


def shipped_figures() -> dict[str, float]:
    """Return what the training of the networks that ship printed."""
    read: dict[str, float] = json.loads((FILE.parent / "figures.json").read_text(encoding="utf-8"))
    return read


def _dense(given: Floats, layer: Layer) -> Floats:
    weight, bias = layer
    return np.asarray(given @ weight.T + bias, dtype=np.float32)


def _won(after: Position) -> float | None:
    """Return what a finished game is worth to the player who bore off last; else ``None``."""
    return None if any(after.own) else sum(won_chances(after))
