"""Key/value states in tensors that are larger than what is in them.

Transformers' dynamic cache copies everything at every step; here a step writes behind what is
there, and a plan that is finished is forgotten by going back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from transformers.cache_utils import Cache, CacheLayerMixin

if TYPE_CHECKING:
    from torch import Tensor

#: Columns that a room grows by.
GROWTH = 256


@dataclass(frozen=True, slots=True)
class States:
    """Key/value states of one sequence: a pair of shape ``(1, heads, length, size)`` a layer."""

    layers: tuple[tuple[Tensor, Tensor], ...]
    length: int

    @property
    def bytes(self) -> int:
        """What they take."""
        return sum(t.element_size() * t.nelement() for pair in self.layers for t in pair)


class RoomLayer(CacheLayerMixin):
    """One layer's keys and values: ``(rows, heads, capacity, size)``, of which a part is filled."""

    is_sliding = False

    def __init__(self, room: Room) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._room = room
        self.length = 0

    @property
    def capacity(self) -> int:
        """Columns that there is room for."""
        return 0 if self.keys is None else int(self.keys.shape[2])

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Make room for the first states."""
        self.reserve(self.length + key_states.shape[2], key_states, value_states)

    def reserve(self, columns: int, key_states: Tensor, value_states: Tensor) -> None:
        """Grow to at least so many columns, for states of this form."""
        if columns <= self.capacity:
            return
        room = -(-max(columns, self._room.least) // GROWTH) * GROWTH
        for name, like in (("keys", key_states), ("values", value_states)):
            rows, heads, _, size = like.shape
            grown = like.new_zeros((rows, heads, room, size))
            if self.length:
                grown[:, :, : self.length] = getattr(self, name)[:, :, : self.length]
            setattr(self, name, grown)
        self.is_initialized = True
        self._room.generation += 1

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Write the states of new tokens; return those of all."""
        if self._room.slots is not None:
            return self._update_fixed(key_states, value_states, self._room.slots)
        end = self.length + key_states.shape[2]
        self.reserve(end, key_states, value_states)
        assert self.keys is not None
        assert self.values is not None
        self.keys[:, :, self.length : end] = key_states
        self.values[:, :, self.length : end] = value_states
        self.length = end
        return self.keys[:, :, :end], self.values[:, :, :end]

    def _update_fixed(
        self, key_states: Tensor, value_states: Tensor, slots: Tensor
    ) -> tuple[Tensor, Tensor]:
        # Nothing here may depend on a Python number that changes: a CUDA graph would keep it.
        assert self.keys is not None
        assert self.values is not None
        self.keys.index_copy_(2, slots, key_states)
        self.values.index_copy_(2, slots, value_states)
        window = self._room.window
        return self.keys[:, :, :window], self.values[:, :, :window]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Return how many columns the next step sees, and where they start."""
        return self.length + query_length, 0

    def get_seq_length(self) -> int:
        """Return how many columns are filled."""
        return self.length

    def get_max_length(self) -> int:
        """Return -1: a room grows."""
        return -1


class Room(Cache):
    """Key/value states of rows that are decoded together.

    Args:
        layers: How many layers the network has.
        least: Columns that there is room for from the start.

    Attributes:
        slots: Columns that a step of fixed form writes, and ``window`` the columns that it sees;
            ``None`` otherwise. See ``fixed_steps``.
        generation: Changes whenever the tensors are others.
    """

    def __init__(self, layers: int, least: int = 0) -> None:
        self.least = least
        self.slots: Tensor | None = None
        self.window = 0
        self.generation = 0
        self._own = [RoomLayer(self) for _ in range(layers)]
        super().__init__(layers=list(self._own))

    @property
    def length(self) -> int:
        """Columns that are filled."""
        return self._own[0].length

    @property
    def capacity(self) -> int:
        """Columns that there is room for."""
        return self._own[0].capacity

    def set_length(self, length: int) -> None:
        """Say how many columns count as filled: fewer forgets the later ones."""
        for layer in self._own:
            layer.length = length

    def reserve(self, columns: int) -> None:
        """Make room for so many columns of rows that have some already."""
        for layer in self._own:
            assert layer.keys is not None
            assert layer.values is not None
            layer.reserve(columns, layer.keys, layer.values)

    def load(self, states: States, rows: int = 1) -> None:
        """Begin with a copy of these states in each of the rows."""
        for layer, (keys, values) in zip(self._own, states.layers, strict=True):
            if layer.keys is not None and layer.keys.shape[0] != rows:
                layer.keys = layer.values = None
            layer.length = 0
            layer.reserve(
                states.length,
                keys.expand(rows, -1, -1, -1),
                values.expand(rows, -1, -1, -1),
            )
            assert layer.keys is not None
            assert layer.values is not None
            layer.keys[:, :, : states.length] = keys
            layer.values[:, :, : states.length] = values
            layer.length = states.length

    def states(self) -> States:
        """Return a copy of the first row's states."""
        return States(
            tuple(
                (
                    layer.keys[:1, :, : layer.length].clone(),
                    layer.values[:1, :, : layer.length].clone(),
                )
                for layer in self._own
                if layer.keys is not None and layer.values is not None
            ),
            self.length,
        )

    def keep(self, rows: Sequence[int]) -> None:
        """Forget all other rows."""
        for layer in self._own:
            if layer.keys is not None and layer.values is not None:
                layer.keys = layer.keys[list(rows)]
                layer.values = layer.values[list(rows)]
        self.generation += 1
