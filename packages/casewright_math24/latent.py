"""L: a problem as the 64 numbers that a trained network makes of it (MCBR-RAG, section 5.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from casewright_math24.counts import INPUTS, inputs
from casewright_math24.puzzle import Problem
from casewright.errors import InputError

#: Numbers of a latent.
UNITS = 64
FILE = Path(__file__).parent / "weights" / "latent.npz"

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Latent:
    """A network of dense layers whose last one is the latent.

    Attributes:
        layers: Weights (out, in) and biases (out) of each layer.
        name: Tells it from others that were trained otherwise.
        last: Whether the last layer's negative numbers become 0, as in the paper's network, whose
            latent is a hidden layer.
    """

    layers: Sequence[tuple[Floats, Floats]]
    name: str
    last: bool

    def vectors(self, problems: Sequence[Problem]) -> Floats:
        """Return the latents of n problems, array (n, 64), not scaled."""
        if not problems:
            return np.zeros((0, UNITS), dtype=np.float32)
        made = np.stack([inputs(problem) for problem in problems])
        for number, (weight, bias) in enumerate(self.layers, 1):
            made = made @ weight.T + bias
            if number < len(self.layers) or self.last:
                made = np.maximum(made, 0)
        return np.asarray(made, dtype=np.float32)

    def save(self, file: Path) -> None:
        """Write it as one file of arrays."""
        arrays: dict[str, Any] = {
            f"{kind}{number}": array
            for number, pair in enumerate(self.layers)
            for kind, array in zip(("weight", "bias"), pair, strict=True)
        }
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("wb") as target:
            np.savez(target, name=np.array(self.name), last=np.array(self.last), **arrays)


def load_latent(file: Path = FILE) -> Latent:
    """Read a latent network.

    Raises:
        InputError: The file is not there, or holds something else.
    """
    try:
        with np.load(file, allow_pickle=False) as read:
            layers = [
                (read[f"weight{n}"], read[f"bias{n}"]) for n in range((len(read.files) - 2) // 2)
            ]
            found = Latent(layers, str(read["name"]), bool(read["last"]))
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        raise InputError(
            f"{file} holds no latent network. Train it: casewright finetune math24"
        ) from error
    if not layers or layers[0][0].shape[1] != INPUTS or layers[-1][0].shape[0] != UNITS:
        raise InputError(f"{file} is of another network. Train it: casewright finetune math24")
    return found


@cache
def shipped_latent() -> Latent:
    """Return the latent network that ships."""
    return load_latent()
