"""Small layers of the plan parser in NumPy, each made from the weights of its name."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

Floats = NDArray[np.float32]
Weights = Mapping[str, Floats]
#: The score of what is not there.
HIDDEN = np.float32(-1e4)


class Linear:
    """An affine map (…, in) to (…, out)."""

    def __init__(self, weights: Weights, name: str) -> None:
        # In this order a product of few rows takes a third of the time.
        self._weight = np.ascontiguousarray(weights[f"{name}.weight"].T)
        self._bias = weights[f"{name}.bias"]

    def __call__(self, states: Floats) -> Floats:
        """Return the map of n states; as one product, since each product reads all weights."""
        flat = states.reshape(-1, states.shape[-1]) @ self._weight
        flat += self._bias
        return flat.reshape(*states.shape[:-1], flat.shape[-1])


class Perceptron:
    """Two affine maps with a GELU between them."""

    def __init__(self, weights: Weights, name: str) -> None:
        self._into, self._out = Linear(weights, f"{name}.0"), Linear(weights, f"{name}.2")

    def __call__(self, states: Floats) -> Floats:
        """Return the map of states (…, in) to (…, out)."""
        inner = self._into(states)
        inner *= np.float32(0.5) * (1 + erf(inner * np.float32(0.5**0.5)))
        return self._out(inner)


def softmax(scores: Floats) -> Floats:
    """Return probabilities along the last axis."""
    shares: Floats = np.exp(scores - scores.max(-1, keepdims=True))
    shares /= np.add.reduce(shares, -1, keepdims=True)
    return shares


def log_softmax(scores: Floats) -> Floats:
    """Return the logarithms of probabilities along the last axis."""
    shifted: Floats = scores - scores.max(-1, keepdims=True)
    shifted -= np.log(np.add.reduce(np.exp(shifted), -1, keepdims=True))
    return shifted


def dots(query: Floats, key: Floats) -> Floats:
    """Return scaled products (queries, keys) of (queries, size) and (keys, size)."""
    return query @ key.T / np.float32(query.shape[-1] ** 0.5)
