"""The network that computes a problem's latent, a vector of 64 numbers (MCBR-RAG's L, section 5.1).

The inputs are the four numbers and the paper's features. For each factor of 24, the features are
the share of the six pairs that can make the factor, and for each of the four numbers the share of
the number's three pairs that can. The features do not show which two pairs make 24 together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright_math24.decomposition import PAIRS, pair_values
from casewright_math24.puzzle import LARGEST, Problem
from casewright_mcbr.layers import (
    LATENT_SIZE,
    Floats,
    Layer,
    forward,
    other_network_error,
    read_arrays,
    write_arrays,
)

#: The shipped network.
LATENT_WEIGHTS = Path(__file__).parent / "weights" / "latent.npz"
#: The factors of 24.
FACTORS = (1, 2, 3, 4, 6, 8, 12, 24)
#: Number of features: five shares for each factor, of all pairs and of each number's pairs.
FEATURE_COUNT = 5 * len(FACTORS)
#: Number of inputs: the numbers and the features.
INPUT_COUNT = 4 + FEATURE_COUNT


def features(problem: Problem) -> NDArray[np.float32]:
    """Return the paper's features of a problem, as (40,)."""
    values = {pair: pair_values(problem, pair) for pair in PAIRS}
    groups = [PAIRS, *([pair for pair in PAIRS if index in pair] for index in range(4))]
    shares = [
        sum(Fraction(factor) in values[pair] for pair in group) / len(group)
        for group in groups
        for factor in FACTORS
    ]
    return np.array(shares, dtype=np.float32)


def inputs(problem: Problem) -> NDArray[np.float32]:
    """Return the network's input, as (44,): the numbers, scaled to 0 to 1, and the features."""
    numbers = (np.array(problem, dtype=np.float32) - 1) / (LARGEST - 1)
    return np.concatenate([numbers, features(problem)])


@dataclass(frozen=True, slots=True)
class LatentNetwork:
    """A network of dense layers; the output of the last layer is the latent."""

    layers: Sequence[Layer]  # weights (out, in) and biases (out) of each layer
    name: str  # the loss and the seed of the training
    #: True if ReLU follows the last layer, as in the paper, where the latent is a hidden layer.
    ends_in_relu: bool

    def vectors(self, problems: Sequence[Problem]) -> Floats:
        """Return the latents of n problems, as (n, 64), without normalising them."""
        if not problems:
            return np.zeros((0, LATENT_SIZE), dtype=np.float32)
        vectors = forward(np.stack([inputs(problem) for problem in problems]), self.layers)
        return np.maximum(vectors, 0) if self.ends_in_relu else vectors

    def save(self, file: Path) -> None:
        """Write the network to a file."""
        arrays: dict[str, Any] = {"name": self.name, "last": self.ends_in_relu}
        for number, (weight, bias) in enumerate(self.layers):
            arrays |= {f"weight{number}": weight, f"bias{number}": bias}
        write_arrays(file, arrays)


def load_network(file: Path = LATENT_WEIGHTS) -> LatentNetwork:
    """Return a file's network; raise ``InputError`` if the file is missing or has other arrays."""
    arrays = read_arrays(file, "latent network", "math24")
    try:
        # The file has two arrays for each layer, the name and "last".
        layers = [(arrays[f"weight{n}"], arrays[f"bias{n}"]) for n in range(len(arrays) // 2 - 1)]
        network = LatentNetwork(layers, str(arrays["name"]), bool(arrays["last"]))
        fits = layers[0][0].shape[1] == INPUT_COUNT and layers[-1][0].shape[0] == LATENT_SIZE
    except (KeyError, IndexError):
        fits = False
    if not fits:
        raise other_network_error(file, "math24")
    return network


#: Returns the shipped network, which a process loads only once.
shipped_network = cache(load_network)
