"""Key/value states of one sequence, in arrays that are larger than what is in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

#: Columns that they grow by.
GROWTH = 256


@dataclass(slots=True)
class NumpyStates:
    """What a network keeps of what it has read.

    Attributes:
        keys: Of shape ``(layers, heads, capacity, size)``.
        values: The same.
        length: Columns that count; going back to fewer forgets the later ones.
    """

    keys: NDArray[np.float32]
    values: NDArray[np.float32]
    length: int = 0

    @classmethod
    def empty(cls, layers: int, heads: int, size: int) -> Self:
        """Return the states of a network that has read nothing."""
        nothing = np.zeros((layers, heads, 0, size), np.float32)
        return cls(nothing, nothing)

    @property
    def bytes(self) -> int:
        """What they take."""
        return self.keys.nbytes + self.values.nbytes

    def reserve(self, columns: int) -> None:
        """Make room for so many columns in all."""
        if columns > self.keys.shape[2]:
            capacity = -(-columns // GROWTH) * GROWTH
            self.keys = _grown(self.keys, self.length, capacity)
            self.values = _grown(self.values, self.length, capacity)

    def copy(self) -> NumpyStates:
        """Return states that go on from here by themselves."""
        return NumpyStates(self.keys.copy(), self.values.copy(), self.length)


def _grown(old: NDArray[np.float32], length: int, capacity: int) -> NDArray[np.float32]:
    layers, heads, _, size = old.shape
    new = np.zeros((layers, heads, capacity, size), np.float32)
    new[:, :, :length] = old[:, :, :length]
    return new
