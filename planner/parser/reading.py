"""The plan parser's network, which needs no torch: encodes toolboxes, plan cases and messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from casewright.planner.parser.arrays import (
    CaseData,
    ReadCase,
    card_arrays,
    message_arrays,
    name_likeness,
    pair_arrays,
)
from casewright.planner.parser.graphs import JointLayers
from casewright.planner.parser.layers import MASKED_SCORE, Floats, Linear, Weights
from casewright.planner.parser.message import Message
from casewright.planner.parser.pointing import JoinedMessage, PointerLayers, Pointers
from casewright.planner.parser.schema import FIELD_NODE, WORD_NODE, Schema
from casewright.planner.parser.votes import CaseVoting
from casewright.stores.encoders.onnx_graph import Bert, bits_for_cpu

#: Names of affine maps; ``node.0`` is for tools, the next ones for parameters, choices, results.
_LINEAR = (
    "word field word_features tool_features parameter_features card example "
    "node.0 node.1 node.2 node.3"
)


@dataclass(frozen=True, slots=True, eq=False)
class ReadToolbox:
    """An encoded toolbox with its plan cases.

    Attributes:
        nodes: States of the toolbox's nodes (nodes, size).
        name_flags: Flags of equal and of similar names; see ``arrays.name_likeness``.
        cases: The plan cases, prepared for votes.
    """

    schema: Schema
    nodes: Floats
    name_flags: Floats
    cases: CaseData


class ArrayNetwork:
    """Runs the plan parser's large layers in ONNX Runtime, and the others in NumPy. Thread-safe.

    The weights of the encoder and of the joint layers have ``bits`` bits: by default 8, or 7 on a
    processor without VNNI (``bits_for_cpu``).

    Raises:
        KeyError: A weight is missing.
    """

    def __init__(self, weights: Weights, bits: int | None = None) -> None:
        bits = bits_for_cpu() if bits is None else bits
        self._encoder = Bert(weights, "encoder.", bits=bits)
        self._joint_layers = JointLayers(weights, bits)
        self._voting, self._pointer_layers = CaseVoting(weights), PointerLayers(weights)
        self._linear = {name: Linear(weights, name) for name in _LINEAR.split()}
        self._type_embeddings = weights["node_type.weight"]
        self._relation_biases = np.ascontiguousarray(weights["relation.weight"].T)
        self._link_biases = weights["link.weight"].T

    def encode_toolbox(self, schema: Schema, cases: Sequence[ReadCase]) -> ReadToolbox:
        """Return an encoded toolbox with its plan cases; at least one case is needed."""
        vectors, words, _ = zip(*(self._encode(message) for message, _ in cases), strict=True)
        case_data = self._voting.case_data(schema, cases, np.stack(vectors), words)
        return ReadToolbox(schema, self._node_states(schema), name_likeness(schema), case_data)

    def join(self, toolbox: ReadToolbox, message: Message) -> Pointers:
        """Encode a message together with a toolbox; the message has at least one word."""
        schema, cases = toolbox.schema, toolbox.cases
        vector, words, fields = self._encode(message)
        votes = self._voting(vector, cases, message.fields)
        features = self._linear["word_features"](np.array(message.features, np.float32))
        states = [
            self._linear["word"](words) + features + self._type_embeddings[WORD_NODE],
            self._linear["field"](fields) + self._type_embeddings[FIELD_NODE],
            toolbox.nodes + votes.states,
        ]
        pairs = pair_arrays(schema, [message])
        present = pairs["present"][0]
        bias = self._relation_biases.take(pairs["relations"], axis=1)
        bias[:, :, ~present] = MASKED_SCORE
        # The first nodes (words, context fields) link to the last (context fields, the toolbox's).
        link_bias = (pairs["links"][0] @ self._link_biases).transpose(2, 0, 1)
        row_count, column_count = link_bias.shape[1:]
        bias[:, :row_count, -column_count:] += link_bias
        bias[:, -column_count:, :row_count] += link_bias.transpose(0, 2, 1)
        bias = bias.reshape(self._joint_layers.layer_count, -1, *bias.shape[1:])
        joint_states, memory = self._joint_layers(np.concatenate(states), bias, present)
        joined = JoinedMessage(
            message, schema, joint_states, memory, len(fields), votes, cases, toolbox.name_flags
        )
        return Pointers(self._pointer_layers, joined)

    def _encode(self, message: Message) -> tuple[Floats, Floats, Floats]:
        """Return mean token states: of the question, of each word and of each context field."""
        states = self._token_states(message.ids, message.types)
        arrays = message_arrays([message])
        question = states[: message.types.index(1) if 1 in message.types else None]
        return question.mean(0), arrays["words"][0] @ states, arrays["fields"][0] @ states

    def _token_states(self, ids: Sequence[int], types: Sequence[int]) -> Floats:
        """Return the states of a text's tokens (tokens, encoder)."""
        tokens = np.array([ids])
        states: Floats = self._encoder(tokens, np.array([types]), np.ones_like(tokens))[0]
        return states

    def _node_states(self, schema: Schema) -> Floats:
        """Return the states of a toolbox's nodes (nodes, size)."""
        arrays = card_arrays(schema)
        cards = [self._token_states(card, [0] * len(card)) for card in schema.cards]
        width = arrays["ids"].shape[1]
        tokens = np.concatenate([np.pad(card, ((0, width - len(card)), (0, 0))) for card in cards])
        parts = np.split(arrays["nodes"] @ tokens, np.cumsum(schema.sizes[:-1]))
        nodes = [self._linear[f"node.{number}"](part) for number, part in enumerate(parts)]
        nodes[0] += self._linear["card"](np.stack([card[0] for card in cards]))
        nodes[0] += self._linear["tool_features"](arrays["tools"])
        nodes[0] += self._linear["example"](arrays["examples"] @ tokens)
        nodes[1] += self._linear["parameter_features"](arrays["parameters"])
        return np.concatenate(nodes) + self._type_embeddings[schema.types()]
