"""The plan parser's decoder, which needs no torch: scores next tools and their arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from casewright.planner.parser.arrays import CaseData, Votes, field_likeness, number_arrays
from casewright.planner.parser.graphs import ArgumentLayers, LayerMemory, Perceptrons, StepLayers
from casewright.planner.parser.layers import MASKED_SCORE, Floats, Linear, Weights
from casewright.planner.parser.message import Message
from casewright.planner.parser.plan_reading import (
    CHOICE,
    CONTEXT,
    KIND_COUNT,
    MAX_SPAN_WORDS,
    PLACE_COUNT,
    PLAIN_COUNT,
    STEP,
    ReadStep,
    pointed_nodes,
)
from casewright.planner.parser.schema import Schema
from casewright.planner.parser.votes import with_sign

#: Names of affine maps and of perceptrons; a name is the prefix of its weights' names.
_LINEAR = (
    "tool_key choice_key context_key field_key span_first span_last span_ends.0 span_ends.1 "
    "number_key took took_for"
)
_PERCEPTRONS = "tool_votes kind_votes choice_votes context_votes field_votes number_features"
#: Affine maps whose only input is an argument's state; ``which`` scores the indices of results.
_STATE_MAPS = ("plain", "which", "span_join")


@dataclass(frozen=True, slots=True)
class JoinedMessage:
    """A message encoded together with a toolbox.

    Attributes:
        states: States of words, context fields and the toolbox's nodes (nodes, size).
        memory: Keys and values of the states, for each decoding layer.
        field_count: Number of the context fields' nodes, at least one.
        name_flags: Flags of equal and of similar names; see ``arrays.name_likeness``.
    """

    message: Message
    schema: Schema
    states: Floats
    memory: LayerMemory
    field_count: int
    votes: Votes[Floats]
    cases: CaseData
    name_flags: Floats


class PointerLayers:
    """The decoder's layers and weights.

    Attributes:
        argument_embeddings: Embeddings of kinds, then of indices of results (…, size).
        sqrt_size: Square root of the states' size, by which products are divided.
        keys: Vectors (…, size) by name, the same for each message; see ``Pointers.argument_rows``.
        bias: Biases of ``_STATE_MAPS``, added to the products with the first vectors of ``keys``.
    """

    def __init__(self, weights: Weights) -> None:
        self.steps, self.argument = StepLayers(weights), ArgumentLayers(weights)
        self.linear = {name: Linear(weights, name) for name in _LINEAR.split()}
        self.votes = Perceptrons(weights, *_PERCEPTRONS.split())
        self.next_votes = Perceptrons(weights, "next_votes")
        self.start, self.end, self.length_scores = (weights[n] for n in ("start", "end", "length"))
        self.query = weights["tool_query.weight"], weights["tool_query.bias"]
        self.place = weights["place.weight"]
        self.argument_embeddings = np.concatenate([weights["kind.weight"], weights["index.weight"]])
        self.sqrt_size = np.float32(len(self.start) ** 0.5)
        self.keys = {name: weights[f"{name}.weight"] for name in _STATE_MAPS}
        self.keys["place"] = self.place[1:] / self.sqrt_size
        self.keys["distance"] = weights["distance.weight"] / self.sqrt_size
        self.bias = np.concatenate([weights[f"{name}.bias"] for name in _STATE_MAPS])


class Pointers:
    """Scores the tools and the arguments of plans for one message."""

    def __init__(self, layers: PointerLayers, joint: JoinedMessage) -> None:
        self._layers, self._joint = layers, joint
        schema, message, states, votes = joint.schema, joint.message, joint.states, joint.votes
        word_count = len(message.words)
        ends = np.cumsum([word_count, joint.field_count, *schema.sizes[:-1]])
        words, fields, self._tools, self._parameters, choices, results = np.split(states, ends)
        linear = layers.linear
        number_words, number_features, _ = number_arrays([message], word_count)
        field_flags = field_likeness(schema, [message])[0]
        tool_scores, self._kind_scores, *scores, number_states = layers.votes(
            votes.tools,
            votes.kinds,
            with_sign(votes.choices),
            np.concatenate([with_sign(votes.context), field_flags], -1),
            np.concatenate([with_sign(votes.fields), joint.name_flags], -1),
            number_features[0],
        )
        #: Weight of the cases, by a tool (or the start) and the tool (or the end) that follows it.
        self._pair_weights = np.tensordot(votes.weights, joint.cases.pairs, 1)
        self._choice_scores, self._context_scores, self._field_scores = (s[..., 0] for s in scores)
        message_keys = {
            "choice": linear["choice_key"](choices),
            "context": linear["context_key"](fields),
            "field": linear["field_key"](results),
            "first": linear["span_first"](words),
            "last": linear["span_last"](words),
            "number": linear["number_key"](number_words[0] @ words) + number_states,
        }
        keys = layers.keys | {n: key / layers.sqrt_size for n, key in message_keys.items()}
        self._keys = np.concatenate([*keys.values()]).T
        ranges = pairwise(np.cumsum([0, *map(len, keys.values())]).tolist())
        self._columns = {name: slice(*range_) for name, range_ in zip(keys, ranges, strict=True)}
        # The query's affine map is multiplied into the tool keys, so no query is computed later.
        tools_and_end = np.concatenate([self._tools, layers.end[None]])
        tool_keys: Floats = linear["tool_key"](tools_and_end) / layers.sqrt_size
        self._tool_keys = (tool_keys @ layers.query[0]).T
        self._tool_biases = tool_keys @ layers.query[1] + np.append(tool_scores, np.float32(0))
        # The keys' size is 64; products are divided by its square root.
        self._first_keys: Floats = linear["span_ends.0"](words) / np.float32(8)
        self._last_keys = linear["span_ends.1"](words).T
        self._first_words = np.arange(word_count)[:, None]
        last_words = self._first_words + np.arange(MAX_SPAN_WORDS)
        self._last_words = last_words.clip(max=word_count - 1)
        length_scores = np.where(last_words < word_count, layers.length_scores, MASKED_SCORE)
        self._length_scores: Floats = length_scores

    @property
    def start(self) -> Floats:
        """The decoder's input before the first step (size,)."""
        start: Floats = self._layers.start + self._layers.place[0]
        return start

    def tool_logits(
        self, inputs: Floats, previous_tools: NDArray[np.int64]
    ) -> tuple[Floats, Floats]:
        """Return states and logits of the next tool for n unfinished plans of the same length.

        Args:
            inputs: The decoder's inputs: ``start``, then ``step_inputs`` (n, places, size).
            previous_tools: The number of tools, for the start; then the tools so far (n, places).

        Returns:
            States (n, size), and logits of each tool and, last, of the end (n, tools + 1).
        """
        states = self._layers.steps(inputs, self._joint.memory)
        [votes] = self._layers.next_votes(self._next_tool_votes(previous_tools))
        logits: Floats = states @ self._tool_keys + self._tool_biases + votes[..., 0]
        return states, logits

    def _next_tool_votes(self, previous_tools: NDArray[np.int64]) -> Floats:
        """Return votes for next tools (n, tools + 1, 4); see ``case_network.next_tool_votes``."""
        cases, weights = self._joint.cases, self._joint.votes.weights
        sequences = cases.sequences.T
        pairs = self._pair_weights[previous_tools[:, -1]]
        for place, tools in enumerate(previous_tools[:, 1:].T):
            weights = weights * (sequences[min(place, len(sequences) - 1)] == tools[:, None])
        # No tool is equal to -1, the padding of a sequence.
        next_tools = sequences[min(previous_tools.shape[1], len(sequences)) - 1]
        weights = np.broadcast_to(weights, (len(previous_tools), len(next_tools)))
        votes = weights @ (next_tools[:, None] == np.arange(pairs.shape[1])).astype(np.float32)
        shares = votes / (weights.sum(1, keepdims=True) + 0.05)
        return np.stack([votes, shares, pairs, pairs / (pairs.sum(1, keepdims=True) + 0.05)], -1)

    def argument_rows(
        self, states: Floats, tools: Sequence[int], parameters: NDArray[np.int64]
    ) -> Floats:
        """Return a row for each argument: the products of its state with all keys.

        Args:
            states: States of the steps (n, size).
            parameters: Parameters of the steps' tools, padded with -1 (n, parameters).
        """
        exists = parameters >= 0
        inputs = self._parameters[parameters.clip(0)]
        step_parts = (states, self._tools[tools])
        repeated = [np.broadcast_to(part[:, None], inputs.shape) for part in step_parts]
        joined = np.concatenate([inputs, *repeated], -1)
        argument_states = self._layers.argument(inputs, joined, exists, self._joint.memory)[exists]
        rows: Floats = argument_states @ self._keys
        rows[:, : len(self._layers.bias)] += self._layers.bias
        return rows

    def option_logits(self, rows: Floats, parameters: NDArray[np.int64], step: int) -> Floats:
        """Return logits of the options of each argument.

        Args:
            rows: Rows of the arguments, from ``argument_rows``.
            step: Index of the arguments' step.

        Returns:
            Logits (arguments, options): plain kinds, choices, context fields, each step's results.
        """
        kind_logits = rows[:, self._columns["plain"]] + self._kind_scores[parameters]
        distances = (step - np.arange(PLACE_COUNT)).clip(0)
        steps = rows[:, self._columns["place"]] + rows[:, self._columns["distance"]][:, distances]
        fields = rows[:, self._columns["field"]] + self._field_scores[parameters]
        fields += kind_logits[:, STEP, None]
        context = rows[:, self._columns["context"]] + self._context_scores[parameters]
        parts = [
            kind_logits[:, :PLAIN_COUNT],
            rows[:, self._columns["choice"]] + self._choice_scores + kind_logits[:, CHOICE, None],
            context + kind_logits[:, CONTEXT, None],
            (fields[:, None] + steps[..., None]).reshape(len(rows), -1),
        ]
        return np.concatenate(parts, 1)

    def span_logits(self, rows: Floats) -> Floats:
        """Return logits of spans (n, words, MAX_SPAN_WORDS) by first word and length minus 1."""
        first, last = rows[:, self._columns["first"]], rows[:, self._columns["last"]]
        joined = rows[:, self._columns["span_join"]][:, None] * self._first_keys
        products = joined @ self._last_keys
        pairs = first[:, :, None] + last[:, None] + products
        logits = pairs[:, self._first_words, self._last_words] + self._length_scores
        return logits.astype(np.float32, copy=False)

    def result_logits(self, rows: Floats) -> Floats:
        """Return logits of the index of the result that an argument takes (n, MAX_RESULTS)."""
        return rows[:, self._columns["which"]]

    def number_logits(self, rows: Floats) -> Floats:
        """Return logits of the message's numbers for each argument (n, numbers)."""
        return rows[:, self._columns["number"]]

    def step_inputs(self, steps: Sequence[ReadStep], place: int) -> Floats:
        """Return the decoder's inputs (n, size) for n alternative steps at the index ``place``."""
        joint, layers = self._joint, self._layers
        node_weights = np.zeros((len(steps), len(joint.states)), np.float32)
        parameter_weights = np.zeros((len(steps), len(self._parameters)), np.float32)
        embedding_weights = np.zeros((len(steps), len(layers.argument_embeddings)), np.float32)
        word_count = len(joint.message.words)
        for row, step in enumerate(steps):
            for argument in step.arguments:
                share = 1 / len(step.arguments)
                first, stop = pointed_nodes(
                    argument, joint.message, joint.schema, word_count, joint.field_count
                )
                node_weights[row, first:stop] += share / max(1, stop - first)
                parameter_weights[row, argument.parameter] += share
                embedding_weights[row, argument.kind] += share
                embedding_weights[row, KIND_COUNT + argument.index] += share
        # The maps are affine, so it is enough to map the mean of a step's arguments.
        inputs: Floats = layers.linear["took"](node_weights @ joint.states)
        inputs += embedding_weights @ layers.argument_embeddings
        inputs += layers.linear["took_for"](parameter_weights @ self._parameters)
        # A step without arguments gets no inputs from the maps, not even their biases.
        inputs *= [[bool(step.arguments)] for step in steps]
        inputs += self._tools[[step.tool for step in steps]] + layers.place[place + 1]
        return inputs
