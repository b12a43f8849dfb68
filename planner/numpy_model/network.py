"""Mistral's network in NumPy (Jiang et al. 2023), as transformers computes it in float32.

One row at a time: with some million weights, the Python of PyTorch's and transformers' layers
weighs as much as the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from casewright.errors import InputError
from casewright.planner.numpy_model.states import NumpyStates
from casewright.planner.numpy_model.weights import Weights

Array = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class MistralForm:
    """What of a Mistral's configuration its computation depends on.

    Attributes:
        vocabulary: Tokens.
        layers: Layers.
        heads: Attention heads.
        kv_heads: Heads with keys and values of their own.
        size: Numbers of a head.
        positions: Longest text in tokens.
        epsilon: Added to mean squares.
        tied: The matrix that reads tokens is also the one that writes them, and stored once.
        theta: Base of the rotary positions' wavelengths (RoFormer: Su et al. 2021).
    """

    vocabulary: int
    layers: int
    heads: int
    kv_heads: int
    size: int
    positions: int
    epsilon: float
    tied: bool
    theta: float

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Self | None:
        """Read a ``config.json``; ``None`` where it is of a network that is not computed here."""
        rope = config.get("rope_parameters") or {}
        if (
            config.get("model_type") != "mistral"
            or config.get("hidden_act") != "silu"
            or config.get("sliding_window")
            or rope.get("rope_type") != "default"
        ):
            return None
        heads = config["num_attention_heads"]
        return cls(
            vocabulary=config["vocab_size"],
            layers=config["num_hidden_layers"],
            heads=heads,
            kv_heads=config["num_key_value_heads"],
            size=config.get("head_dim") or config["hidden_size"] // heads,
            positions=config["max_position_embeddings"],
            epsilon=config["rms_norm_eps"],
            tied=config["tie_word_embeddings"],
            theta=rope["rope_theta"],
        )


@dataclass(frozen=True, slots=True)
class _Layer:
    """A layer's matrices, those with one input joined and transposed to be multiplied from left."""

    attention_norm: Array
    qkv: Array
    output: Array
    mlp_norm: Array
    gate_up: Array
    down: Array


class NumpyMistral:
    """Computes logits of the next token.

    Args:
        form: Of the network.
        weights: By transformers' names.

    Raises:
        InputError: A weight is absent.
    """

    def __init__(self, form: MistralForm, weights: Weights) -> None:
        self.form = form
        try:
            self._embedding = weights["model.embed_tokens.weight"]
            self._logits = self._embedding if form.tied else weights["lm_head.weight"]
            self._norm = weights["model.norm.weight"]
            self._layers = [_layer(weights, f"model.layers.{n}.") for n in range(form.layers)]
        except KeyError as error:
            raise InputError(
                f"The model lacks the weight {error.args[0]}: it is damaged. Copy its folder anew."
            ) from error
        even = np.arange(0, form.size, 2, dtype=np.float32) / form.size
        angles = np.arange(form.positions, dtype=np.float32)[:, None] / form.theta**even
        self._cos = np.cos(np.concatenate([angles, angles], axis=1))
        self._sin = np.sin(np.concatenate([angles, angles], axis=1))

    def states(self) -> NumpyStates:
        """Return the states of a text of which nothing was read."""
        return NumpyStates.empty(self.form.layers, self.form.kv_heads, self.form.size)

    def read(
        self, tokens: Sequence[int], states: NumpyStates, asked: NDArray[np.intp] | None = None
    ) -> Array:
        """Read tokens behind what the states hold, and add theirs.

        Args:
            tokens: At least one.
            states: Of what was read before.
            asked: Ids of the tokens whose logits are asked for, by default of all: the matrix
                that writes tokens is a third of a small network.

        Returns:
            Logits after the last token, -inf where none is asked for; shape ``(vocabulary,)``.
        """
        begin, end = states.length, states.length + len(tokens)
        states.reserve(end)
        rotation = self._cos[begin:end], self._sin[begin:end]
        # Row t may see the columns up to its own.
        later = np.triu(np.full((len(tokens), len(tokens)), -np.inf, np.float32), 1)
        hidden = self._embedding[list(tokens)]
        for number, layer in enumerate(self._layers):
            normed = _normed(hidden, layer.attention_norm, self.form.epsilon)
            keys, values = states.keys[number], states.values[number]
            if number == self.form.layers - 1:
                # Nothing but states is asked of the other rows any more.
                hidden, later = hidden[-1:], later[-1:]
            seen = self._attended(normed @ layer.qkv, keys, values, rotation, later, begin)
            hidden = hidden + seen @ layer.output
            normed = _normed(hidden, layer.mlp_norm, self.form.epsilon)
            gate, up = np.split(normed @ layer.gate_up, 2, axis=-1)
            hidden = hidden + (_silu(gate) * up) @ layer.down
        states.length = end
        last = _normed(hidden[-1], self._norm, self.form.epsilon)
        if asked is None or len(asked) > self.form.vocabulary // 4:
            whole: Array = self._logits @ last
            return whole
        logits = np.full(self.form.vocabulary, -np.inf, np.float32)
        logits[asked] = self._logits[asked] @ last
        return logits

    def _attended(
        self,
        projected: Array,
        keys: Array,
        values: Array,
        rotation: tuple[Array, Array],
        later: Array,
        begin: int,
    ) -> Array:
        """Return what the last rows see, as many as the mask has; the states get all rows.

        Args:
            projected: Queries, keys and values; shape ``(tokens, (heads + 2 kv_heads) · size)``.
            keys: The layer's; shape ``(kv_heads, capacity, size)``.
            values: The same.
            rotation: Cosines and sines of the tokens' positions; shape ``(tokens, size)`` each.
            later: 0 or -inf for each row and token; shape ``(rows, tokens)``.
            begin: Columns that the states hold.

        Returns:
            Shape ``(rows, heads · size)``.
        """
        form, (rows, tokens) = self.form, later.shape
        end = begin + tokens
        split = projected.reshape(tokens, form.heads + 2 * form.kv_heads, form.size)
        split = split.transpose(1, 0, 2)
        cos, sin = rotation
        asked = _rotated(split[: form.heads, -rows:], cos[-rows:], sin[-rows:])
        asked /= form.size**0.5
        keys[:, begin:end] = _rotated(split[form.heads : -form.kv_heads], *rotation)
        values[:, begin:end] = split[-form.kv_heads :]
        # Heads that share keys are multiplied with them at once.
        scores: Array = asked.reshape(form.kv_heads, -1, form.size) @ keys[:, :end].transpose(
            0, 2, 1
        )
        shares: Array = scores.reshape(form.heads, rows, end)
        shares[:, :, begin:] += later
        shares -= shares.max(axis=-1, keepdims=True)
        np.exp(shares, out=shares)
        shares /= shares.sum(axis=-1, keepdims=True)
        seen: Array = shares.reshape(form.kv_heads, -1, end) @ values[:, :end]
        by_row: Array = seen.reshape(form.heads, rows, form.size).transpose(1, 0, 2)
        return by_row.reshape(rows, form.heads * form.size)


def _layer(weights: Weights, name: str) -> _Layer:
    def joined(*parts: str) -> Array:
        # Rows are multiplied from the left.
        whole = np.concatenate([weights[f"{name}{part}_proj.weight"] for part in parts])
        return np.ascontiguousarray(whole.T)

    return _Layer(
        weights[f"{name}input_layernorm.weight"],
        joined("self_attn.q", "self_attn.k", "self_attn.v"),
        joined("self_attn.o"),
        weights[f"{name}post_attention_layernorm.weight"],
        joined("mlp.gate", "mlp.up"),
        joined("mlp.down"),
    )


def _normed(hidden: Array, weight: Array, epsilon: float) -> Array:
    """Root mean square normalisation (Zhang and Sennrich 2019)."""
    mean = np.mean(np.square(hidden), axis=-1, keepdims=True)
    scale: Array = np.sqrt(mean + epsilon, dtype=np.float32)
    return hidden / scale * weight


def _silu(gate: Array) -> Array:
    # Beyond what float32 holds, the quotient is 0 as it should be.
    with np.errstate(over="ignore"):
        opened: Array = gate / (1 + np.exp(-gate))
    return opened


def _rotated(heads: Array, cos: Array, sin: Array) -> Array:
    """Turn pairs of numbers by their position's angles; a pair is half a head apart."""
    half = heads.shape[-1] // 2
    turned: Array = np.concatenate([-heads[..., half:], heads[..., :half]], axis=-1)
    return heads * cos + turned * sin
