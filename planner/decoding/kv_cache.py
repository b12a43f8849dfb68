"""A cache of key/value states with spare columns; a column has the states of one token per row.

Transformers' dynamic cache copies all states at every step. This cache writes new states into the
columns after the filled ones. To remove a finished plan, the decoder reduces the length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

from casewright.planner.language_model import LanguageModel

#: A cache allocates columns in multiples of this number.
BLOCK_COLUMNS = 256


def count_layers(model: LanguageModel) -> int:
    """Return the number of layers with key/value states."""
    return int(model.network.config.get_text_config().num_hidden_layers)


def sliding_window_size(model: LanguageModel) -> int | None:
    """Return the number of tokens in a sliding attention window; ``None`` without a window."""
    config: Any = model.network.config.get_text_config()
    size = getattr(config, "sliding_window", None)
    return int(size) if size and getattr(config, "use_sliding_window", True) is not False else None


@dataclass(frozen=True, slots=True)
class States:
    """Key/value states of one sequence; each tensor has the shape ``(1, heads, length, size)``."""

    layers: tuple[tuple[Tensor, Tensor], ...]
    length: int

    @property
    def bytes(self) -> int:
        """Size in bytes."""
        return sum(tensor.nbytes for pair in self.layers for tensor in pair)


class KVLayer(CacheLayerMixin):
    """Keys and values of one layer, ``(rows, heads, capacity, size)``, filled up to a length."""

    is_sliding = False

    def __init__(self) -> None:
        super().__init__()
        self.length = 0

    @property
    def tensors(self) -> tuple[Tensor, Tensor]:
        """Keys and values; the layer must not be empty."""
        assert self.keys is not None
        assert self.values is not None
        return self.keys, self.values

    @property
    def capacity(self) -> int:
        """Number of columns of the tensors."""
        return 0 if self.keys is None else int(self.keys.shape[2])

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Allocate columns for the first states."""
        self.reserve(self.length + key_states.shape[2], key_states, value_states)

    def reserve(self, columns: int, key_states: Tensor, value_states: Tensor) -> None:
        """Allocate at least ``columns`` columns for states of these shapes and types."""
        if columns <= self.capacity:
            return
        columns = -(-columns // BLOCK_COLUMNS) * BLOCK_COLUMNS
        for name, states in (("keys", key_states), ("values", value_states)):
            rows, heads, _, size = states.shape
            tensor = states.new_zeros((rows, heads, columns, size))
            if self.length:
                tensor[:, :, : self.length] = getattr(self, name)[:, :, : self.length]
            setattr(self, name, tensor)
        self.is_initialized = True

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Write the states of new tokens; return the states of all filled columns."""
        end = self.length + key_states.shape[2]
        self.reserve(end, key_states, value_states)
        keys, values = self.tensors
        keys[:, :, self.length : end] = key_states
        values[:, :, self.length : end] = value_states
        self.length = end
        return keys[:, :, :end], values[:, :, :end]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Return the number of columns to which the next step attends, and the first column, 0."""
        return self.length + query_length, 0

    def get_seq_length(self) -> int:
        """Return the number of filled columns."""
        return self.length

    def get_max_length(self) -> int:
        """Return -1 (no maximum), since the cache grows."""
        return -1


class KVCache(Cache):
    """Key/value states of a batch of rows."""

    def __init__(self, layer_count: int) -> None:
        self._kv_layers = [KVLayer() for _ in range(layer_count)]
        super().__init__(layers=list(self._kv_layers))

    @property
    def length(self) -> int:
        """Number of filled columns."""
        return self._kv_layers[0].length

    def set_length(self, length: int) -> None:
        """Set the number of filled columns; a smaller number drops the last columns."""
        for layer in self._kv_layers:
            layer.length = length

    def load(self, states: States, row_count: int = 1) -> None:
        """Replace the content by ``row_count`` copies of these states."""
        for layer, pair in zip(self._kv_layers, states.layers, strict=True):
            if layer.keys is not None and layer.keys.shape[0] != row_count:
                layer.keys = layer.values = None
            layer.length = 0
            layer.reserve(states.length, *(source.expand(row_count, -1, -1, -1) for source in pair))
            for target, source in zip(layer.tensors, pair, strict=True):
                target[:, :, : states.length] = source
            layer.length = states.length

    def states(self) -> States:
        """Return a copy of the first row's states."""
        length = self.length
        pairs = [[t[:1, :, :length].clone() for t in layer.tensors] for layer in self._kv_layers]
        return States(tuple((keys, values) for keys, values in pairs), length)

    def keep(self, rows: Sequence[int]) -> None:
        """Keep only the rows with these indices, in this order."""
        for layer in self._kv_layers:
            layer.keys, layer.values = (tensor[list(rows)] for tensor in layer.tensors)
