"""Small layers of the plan parser in NumPy; a layer's name is the prefix of its weights' names."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Weights = Mapping[str, Floats]
#: The score of padding and masked options.
MASKED_SCORE = np.float32(-1e4)


class Linear:
    """Affine map from (…, in) to (…, out)."""

    def __init__(self, weights: Weights, name: str) -> None:
        # With this memory layout, a product of few rows takes a third of the time.
        self._weight = np.ascontiguousarray(weights[f"{name}.weight"].T)
        self._bias = weights[f"{name}.bias"]

    def __call__(self, states: Floats) -> Floats:
        """Return the output (…, out)."""
        # One product for all states reads the weights only once.
        flat = states.reshape(-1, states.shape[-1]) @ self._weight
        flat += self._bias
        return flat.reshape(*states.shape[:-1], flat.shape[-1])


class Perceptron:
    """Perceptron with one hidden layer (GELU)."""

    def __init__(self, weights: Weights, name: str) -> None:
        self._hidden, self._output = Linear(weights, f"{name}.0"), Linear(weights, f"{name}.2")

    def __call__(self, states: Floats) -> Floats:
        """Return the output (…, out) for states (…, in)."""
        return self._output(gelu(self._hidden(states)))


def gelu(states: Floats) -> Floats:
    """Return the GELU of states (…), with errors up to 2e-7 times the states' absolute values.

    NumPy has no error function; this is Abramowitz and Stegun's approximation 7.1.26.
    """
    magnitude = np.abs(states) * np.float32(0.5**0.5)
    t = 1 / (1 + np.float32(0.3275911) * magnitude)
    polynomial = np.zeros_like(t)
    for factor in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592):
        polynomial += np.float32(factor)
        polynomial *= t
    erf = np.copysign(1 - polynomial * np.exp(-magnitude * magnitude), states)
    output: Floats = np.float32(0.5) * states * (1 + erf)
    return output


class LayerNorm:
    """Normalises states (…, size) along their last axis."""

    def __init__(self, weights: Weights, name: str, epsilon: float = 1e-5) -> None:
        self._weight, self._bias = weights[f"{name}.weight"], weights[f"{name}.bias"]
        self._epsilon = np.float32(epsilon)

    def __call__(self, states: Floats) -> Floats:
        """Return the normalised states."""
        centred = states - states.mean(-1, keepdims=True)
        deviation = np.sqrt(np.square(centred).mean(-1, keepdims=True) + self._epsilon)
        normalised: Floats = centred / deviation * self._weight + self._bias
        return normalised


def softmax(scores: Floats) -> Floats:
    """Return the softmax of scores along the last axis."""
    probabilities: Floats = np.exp(scores - scores.max(-1, keepdims=True))
    probabilities /= np.add.reduce(probabilities, -1, keepdims=True)
    return probabilities


def log_softmax(scores: Floats) -> Floats:
    """Return the logarithm of the softmax of scores along the last axis."""
    shifted: Floats = scores - scores.max(-1, keepdims=True)
    shifted -= np.log(np.add.reduce(np.exp(shifted), -1, keepdims=True))
    return shifted
