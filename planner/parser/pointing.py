"""The plan parser's decoder without torch: scores the next tools and their arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from casewright.planner.parser.arrays import CaseData, Votes, field_likeness, number_arrays
from casewright.planner.parser.graphs import ArgumentLayers, LayerMemory, Perceptrons, StepLayers
from casewright.planner.parser.layers import HIDDEN, Floats, Linear, Weights
from casewright.planner.parser.message import Message
from casewright.planner.parser.plan_reading import (
    CHOICE,
    CONTEXT,
    KIND_COUNT,
    LONGEST,
    PLACES,
    PLAIN,
    STEP,
    ReadStep,
    pointed,
)
from casewright.planner.parser.schema import Schema
from casewright.planner.parser.votes import with_sign

_LINEAR = (
    "tool_key choice_key context_key field_key span_first span_last span_ends.0 span_ends.1 "
    "number_key took took_for"
)
_PERCEPTRONS = "tool_votes kind_votes choice_votes context_votes field_votes number_features"
#: Affine maps whose only input is an argument's state.
_MAPS = ("plain", "which", "span_join")


@dataclass(frozen=True, slots=True)
class JoinedMessage:
    """A message encoded together with a toolbox.

    Attributes:
        states: States of words, context fields and the toolbox's nodes (nodes, size).
        memory: Keys and values of the states, for each decoding layer.
        fields: Number of nodes of context fields, at least one.
        names: See ``arrays.name_likeness``.
    """

    message: Message
    schema: Schema
    states: Floats
    memory: LayerMemory
    fields: int
    votes: Votes[Floats]
    cases: CaseData
    names: Floats


class PointerLayers:
    """The decoder's layers.

    Attributes:
        taken: Embeddings of the kinds of arguments, then of the indices of results (…, size).
        root: The root of the states' size, by which products are divided.
        keys: By name, the vectors (…, size) with which an argument's state is multiplied and which
            do not depend on the message.
        bias: Addend to the products with the first keys, which are those of ``_MAPS``.
    """

    def __init__(self, weights: Weights) -> None:
        self.steps, self.argument = StepLayers(weights), ArgumentLayers(weights)
        self.linear = {name: Linear(weights, name) for name in _LINEAR.split()}
        self.votes = Perceptrons(weights, *_PERCEPTRONS.split())
        self.next_votes = Perceptrons(weights, "next_votes")
        self.start, self.end, self.length = (weights[n] for n in ("start", "end", "length"))
        self.query = weights["tool_query.weight"], weights["tool_query.bias"]
        self.place = weights["place.weight"]
        self.taken = np.concatenate([weights["kind.weight"], weights["index.weight"]])
        self.root = np.float32(len(self.start) ** 0.5)
        self.keys = {name: weights[f"{name}.weight"] for name in _MAPS}
        self.keys["place"] = self.place[1:] / self.root
        self.keys["distance"] = weights["distance.weight"] / self.root
        self.bias = np.concatenate([weights[f"{name}.bias"] for name in _MAPS])


class Pointers:
    """Scores of the tools and of the arguments in plans for a message."""

    def __init__(self, layers: PointerLayers, joint: JoinedMessage) -> None:
        self._layers, self._joint = layers, joint
        schema, message, states, votes = joint.schema, joint.message, joint.states, joint.votes
        word_count = len(message.words)
        ends = np.cumsum([word_count, joint.fields, *schema.sizes[:-1]])
        words, fields, self._tools, self._parameters, choices, results = np.split(states, ends)
        linear = layers.linear
        weights, number_features, _ = number_arrays([message], word_count)
        likeness = field_likeness(schema, [message])[0]
        tools, self._kinds, choice, context, field, numbers = layers.votes(
            votes.tools,
            votes.kinds,
            with_sign(votes.choices),
            np.concatenate([with_sign(votes.context), likeness], -1),
            np.concatenate([with_sign(votes.fields), joint.names], -1),
            number_features[0],
        )
        #: Sum of the weights of the cases in which a tool follows another (tools + 1, tools + 1).
        self._pairs = np.tensordot(votes.weights, joint.cases.pairs, 1)
        self._choices, self._contexts, self._fields = choice[:, 0], context[..., 0], field[..., 0]
        keys = {
            "choice": linear["choice_key"](choices),
            "context": linear["context_key"](fields),
            "field": linear["field_key"](results),
            "first": linear["span_first"](words),
            "last": linear["span_last"](words),
            "number": linear["number_key"](weights[0] @ words) + numbers,
        }
        keys = layers.keys | {name: key / layers.root for name, key in keys.items()}
        self._keys = np.concatenate([*keys.values()]).T
        stops = pairwise(np.cumsum([0, *map(len, keys.values())]).tolist())
        self._columns = {name: slice(*bounds) for name, bounds in zip(keys, stops, strict=True)}
        # Each key is multiplied with the weights of the query's affine map: then the query need not
        # be computed, and its input is multiplied with the keys.
        tools_and_end = np.concatenate([self._tools, layers.end[None]])
        tool_keys: Floats = linear["tool_key"](tools_and_end) / layers.root
        self._tool_keys = (tool_keys @ layers.query[0]).T
        self._tool_votes = tool_keys @ layers.query[1] + np.append(tools, np.float32(0))
        # Divided by the root of the size of these keys, 64.
        self._begins: Floats = linear["span_ends.0"](words) / np.float32(8)
        self._ends = linear["span_ends.1"](words).T
        self._starts = np.arange(word_count)[:, None]
        stop = self._starts + np.arange(LONGEST)
        self._stops = stop.clip(max=word_count - 1)
        self._lengths: Floats = np.where(stop < word_count, layers.length, np.float32(HIDDEN))

    @property
    def start(self) -> Floats:
        """The decoder's input before the first step (size,)."""
        start: Floats = self._layers.start + self._layers.place[0]
        return start

    def next(self, inputs: Floats, previous_tools: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Return scores of the next tool for n hypotheses of the same length.

        Args:
            inputs: The decoder's inputs: ``start``, then ``step_inputs`` (n, places, size).
            previous_tools: The number of the end, then the tools so far (n, places).

        Returns:
            States (n, size), and logits of each tool and, last, of the end (n, tools + 1).
        """
        states = self._layers.steps(inputs, self._joint.memory)
        [votes] = self._layers.next_votes(self._following(previous_tools))
        logits: Floats = states @ self._tool_keys + self._tool_votes + votes[..., 0]
        return states, logits

    def _following(self, previous_tools: NDArray[np.int64]) -> Floats:
        """Return the cases' votes for the next tool or the end (n, tools + 1, 4)."""
        cases, weights = self._joint.cases, self._joint.votes.weights
        sequences = cases.sequences.T
        pairs = self._pairs[previous_tools[:, -1]]
        for number, tools in enumerate(previous_tools[:, 1:].T):
            weights = weights * (sequences[min(number, len(sequences) - 1)] == tools[:, None])
        # A sequence that has ended has -1, which does not count.
        following = sequences[min(previous_tools.shape[1], len(sequences)) - 1]
        weights = np.broadcast_to(weights, (len(previous_tools), len(following)))
        votes = weights @ (following[:, None] == np.arange(pairs.shape[1])).astype(np.float32)
        shares = votes / (weights.sum(1, keepdims=True) + 0.05)
        return np.stack([votes, shares, pairs, pairs / (pairs.sum(1, keepdims=True) + 0.05)], -1)

    def arguments(
        self, states: Floats, tools: Sequence[int], parameters: NDArray[np.int64]
    ) -> Floats:
        """Return a row of products with all keys for each argument of n steps, in order.

        The methods below take these rows.

        Args:
            states: States of the steps (n, size).
            parameters: Parameters of the steps' tools, padded with -1 (n, parameters).
        """
        exists = parameters >= 0
        slots = self._parameters[parameters.clip(0)]
        tiled = [
            np.broadcast_to(part[:, None], slots.shape) for part in (states, self._tools[tools])
        ]
        wide = np.concatenate([slots, *tiled], -1)
        rows: Floats = self._layers.argument(slots, wide, exists, self._joint.memory)[exists]
        rows = rows @ self._keys
        rows[:, : len(self._layers.bias)] += self._layers.bias
        return rows

    def options(self, rows: Floats, parameters: NDArray[np.int64], step: int) -> Floats:
        """Return logits of the options of each argument.

        Args:
            rows: Rows of the arguments, from ``arguments``.
            step: Number of their step, from 0.

        Returns:
            (arguments, options): PLAIN kinds, choices, context fields, and result fields by step.
        """
        kinds = rows[:, self._columns["plain"]] + self._kinds[parameters]
        distances = (step - np.arange(PLACES)).clip(0)
        steps = rows[:, self._columns["place"]] + rows[:, self._columns["distance"]][:, distances]
        fields = rows[:, self._columns["field"]] + self._fields[parameters] + kinds[:, STEP, None]
        context = rows[:, self._columns["context"]] + self._contexts[parameters]
        parts = [
            kinds[:, :PLAIN],
            rows[:, self._columns["choice"]] + self._choices + kinds[:, CHOICE, None],
            context + kinds[:, CONTEXT, None],
            (fields[:, None] + steps[..., None]).reshape(len(rows), -1),
        ]
        return np.concatenate(parts, 1)

    def runs(self, rows: Floats) -> Floats:
        """Return logits (n, words, LONGEST) of spans, by first word and length - 1."""
        first, last = rows[:, self._columns["first"]], rows[:, self._columns["last"]]
        products = (rows[:, self._columns["span_join"]][:, None] * self._begins) @ self._ends
        pairs = first[:, :, None] + last[:, None] + products
        logits = pairs[:, self._starts, self._stops] + self._lengths
        return logits.astype(np.float32, copy=False)

    def results(self, rows: Floats) -> Floats:
        """Return logits of the index of the result that an argument takes (n, RESULTS)."""
        return rows[:, self._columns["which"]]

    def numbers(self, rows: Floats) -> Floats:
        """Return logits of the message's numbers for each argument (n, numbers)."""
        return rows[:, self._columns["number"]]

    def step_inputs(self, steps: Sequence[ReadStep], number: int) -> Floats:
        """Return the decoder's inputs (n, size) for steps with this number, from 0."""
        joint, layers = self._joint, self._layers
        shares = np.zeros((len(steps), len(joint.states)), np.float32)
        slots = np.zeros((len(steps), len(self._parameters)), np.float32)
        taken = np.zeros((len(steps), len(layers.taken)), np.float32)
        words = len(joint.message.words)
        for row, step in enumerate(steps):
            for argument in step.arguments:
                share = 1 / len(step.arguments)
                first, last = pointed(argument, joint.message, joint.schema, words, joint.fields)
                shares[row, first:last] += share / max(1, last - first)
                slots[row, argument.parameter] += share
                taken[row, argument.kind] += share
                taken[row, KIND_COUNT + argument.index] += share
        # The mean of the maps of all arguments is the map of their mean.
        values: Floats = layers.linear["took"](shares @ joint.states) + taken @ layers.taken
        values += layers.linear["took_for"](slots @ self._parameters)
        values *= [[bool(step.arguments)] for step in steps]
        values += self._tools[[step.tool for step in steps]] + layers.place[number + 1]
        return values
