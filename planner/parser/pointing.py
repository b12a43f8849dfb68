"""The plan parser's decoder: scores of the next tools, and of the pointers of their arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from casewright.planner.parser.arrays import CaseData, Votes, field_likeness, number_arrays
from casewright.planner.parser.graphs import ArgumentLayers, LayerMemory, StepLayers
from casewright.planner.parser.layers import HIDDEN, Floats, Linear, Perceptron, Weights, dots
from casewright.planner.parser.message import Message
from casewright.planner.parser.plan_reading import (
    CHOICE,
    CONTEXT,
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
    "tool_query tool_key plain choice_key context_key field_key which span_first span_last "
    "span_join span_ends.0 span_ends.1 number_key took took_for"
)
_PERCEPTRONS = (
    "next_votes tool_votes kind_votes choice_votes context_votes field_votes number_features"
)
_TABLES = "place distance kind index"


@dataclass(frozen=True, slots=True)
class JoinedMessage:
    """A message joined with a toolbox.

    Attributes:
        states: Of words, context fields and the toolbox's nodes (nodes, size).
        memory: The decoding layers' keys and values of the states.
        fields: Nodes of context fields; at least one.
        votes: Of the cases.
        names: See ``arrays.name_likeness``.
    """

    message: Message
    schema: Schema
    states: Floats
    memory: LayerMemory
    fields: int
    votes: Votes[Floats]
    known: CaseData
    names: Floats


class PointerLayers:
    """The decoder's layers."""

    def __init__(self, weights: Weights) -> None:
        self.steps, self.argument = StepLayers(weights), ArgumentLayers(weights)
        self.linear = {name: Linear(weights, name) for name in _LINEAR.split()}
        self.perceptron = {name: Perceptron(weights, name) for name in _PERCEPTRONS.split()}
        self.table = {name: weights[f"{name}.weight"] for name in _TABLES.split()}
        self.start, self.end, self.length = (weights[n] for n in ("start", "end", "length"))


class Pointers:
    """Scores of the plans of one message."""

    def __init__(self, layers: PointerLayers, joint: JoinedMessage) -> None:
        self._layers, self._joint = layers, joint
        schema, message, states = joint.schema, joint.message, joint.states
        first = len(message.words)
        ends = [0, first, joint.fields, *schema.sizes]
        parts = [states[start:stop] for start, stop in pairwise(np.cumsum(ends))]
        words, fields, self._tools, self._parameters, choices, results = parts
        linear = layers.linear
        keyed = np.concatenate([self._tools, layers.end[None]])
        self._tool_keys = linear["tool_key"](keyed)
        self._tool_votes = np.append(layers.perceptron["tool_votes"](joint.votes.tools), 0)
        self._choice_keys = linear["choice_key"](choices)
        self._context_keys = linear["context_key"](fields)
        self._field_keys = linear["field_key"](results)
        self._likeness = field_likeness(schema, [message])[0]
        self._span_keys = linear["span_first"](words), linear["span_last"](words)
        self._span_ends = linear["span_ends.0"](words), linear["span_ends.1"](words)
        self._starts = np.arange(first)[:, None]
        self._stops = self._starts + np.arange(LONGEST)
        weights, facts, _ = number_arrays([message], first)
        numbers = linear["number_key"](weights[0] @ words)
        self._number_keys = numbers + layers.perceptron["number_features"](facts[0])

    @property
    def start(self) -> Floats:
        """The decoder's input before the first step (size,)."""
        start: Floats = self._layers.start + self._layers.table["place"][0]
        return start

    def next(self, fed: Floats, before: Sequence[Sequence[int]]) -> tuple[Floats, Floats]:
        """Return scores of the next tool after n beginnings of the same length.

        Args:
            fed: ``start``, then the ``step_input`` of each step (n, places, size).
            before: The end's number, then the tools (n, places).

        Returns:
            States (n, size), and logits of each tool and, last, of the end (n, tools + 1).
        """
        layers = self._layers
        states = layers.steps(fed, self._joint.memory)[:, -1]
        following = np.stack([self._following(tools) for tools in before])
        logits = dots(layers.linear["tool_query"](states), self._tool_keys) + self._tool_votes
        return states, logits + layers.perceptron["next_votes"](following)[..., 0]

    def _following(self, before: Sequence[int]) -> Floats:
        """Return the cases' votes on each tool and the end after some tools (tools + 1, 4)."""
        known, weights = self._joint.known, self._joint.votes.weights
        last = known.sequences.shape[1] - 1
        for number, tool in enumerate(before[1:]):
            weights = weights * (known.sequences[:, min(number, last)] == tool)
        following = known.sequences[:, min(len(before) - 1, last)]
        # A sequence that has ended has -1, which does not count.
        votes = np.bincount(following + 1, weights, len(self._tool_keys) + 1)[1:]
        pairs = self._joint.votes.weights @ known.pairs[:, before[-1]]
        shares = [votes, votes / (weights.sum() + 0.05), pairs, pairs / (pairs.sum() + 0.05)]
        return np.stack(shares, -1).astype(np.float32)

    def arguments(
        self, states: Floats, tools: Sequence[int], parameters: NDArray[np.int64]
    ) -> Floats:
        """Return a state for each argument of n steps, one after the other (arguments, size).

        Args:
            states: Of the steps (n, size).
            parameters: The tools' parameters, padded with -1 (n, most).
        """
        exists = parameters >= 0
        slots = self._parameters[parameters.clip(0)]
        each = [
            np.broadcast_to(part[:, None], slots.shape) for part in (states, self._tools[tools])
        ]
        wide = np.concatenate([slots, *each], -1)
        return self._layers.argument(slots, wide, exists, self._joint.memory)[exists]

    def options(self, states: Floats, parameters: NDArray[np.int64], step: int) -> Floats:
        """Return logits of the options of each argument.

        Args:
            states: Of the arguments (arguments, size).
            step: The number of their step, from 0.

        Returns:
            (arguments, options): PLAIN kinds, choices, context fields, and result fields by step.
        """
        layers, votes = self._layers, self._joint.votes
        linear, perceptron, table = layers.linear, layers.perceptron, layers.table
        base = linear["plain"](states) + perceptron["kind_votes"](votes.kinds[parameters])
        choice = dots(states, self._choice_keys)
        choice += perceptron["choice_votes"](with_sign(votes.choices))[:, 0]
        likeness = self._likeness[parameters]
        evidence = np.concatenate([with_sign(votes.context[parameters]), likeness], -1)
        context = dots(states, self._context_keys) + perceptron["context_votes"](evidence)[..., 0]
        likeness = self._joint.names[parameters]
        evidence = np.concatenate([with_sign(votes.fields[parameters]), likeness], -1)
        result = dots(states, self._field_keys) + perceptron["field_votes"](evidence)[..., 0]
        away = (step - np.arange(PLACES)).clip(0)
        steps = dots(states, table["place"][1:] + table["distance"][away])
        result = result[:, None] + steps[..., None] + base[:, STEP, None, None]
        parts = [
            base[:, :PLAIN],
            choice + base[:, CHOICE, None],
            context + base[:, CONTEXT, None],
            result.reshape(len(states), -1),
        ]
        return np.concatenate(parts, 1)

    def runs(self, states: Floats) -> Floats:
        """Return logits (n, words, LONGEST) of runs by first word and length less one."""
        first, last = (dots(states, keys) for keys in self._span_keys)
        begins, ends = self._span_ends
        both = (self._layers.linear["span_join"](states)[:, None] * begins) @ ends.T / 8
        pairs = first[:, :, None] + last[:, None] + both
        inside = self._stops < len(begins)
        runs = pairs[:, self._starts, np.where(inside, self._stops, 0)] + self._layers.length
        return np.where(inside, runs, HIDDEN)

    def results(self, states: Floats) -> Floats:
        """Return logits of which result of a step each argument takes (n, RESULTS)."""
        return self._layers.linear["which"](states)

    def numbers(self, states: Floats) -> Floats:
        """Return logits of the message's numbers for each argument (n, numbers)."""
        return dots(states, self._number_keys)

    def step_input(self, step: ReadStep, number: int) -> Floats:
        """Return the decoder's input (size,) after a step with its number, from 0."""
        joint, layers = self._joint, self._layers
        step_input: Floats = self._tools[step.tool] + layers.table["place"][number + 1]
        if not step.arguments:
            return step_input
        count = len(step.arguments)
        shares = np.zeros(len(joint.states), np.float32)
        for argument in step.arguments:
            words = len(joint.message.words)
            first, last = pointed(argument, joint.message, joint.schema, words, joint.fields)
            shares[first:last] += 1 / (count * max(1, last - first))
        slots = self._parameters[[argument.parameter for argument in step.arguments]]
        kinds = layers.table["kind"][[argument.kind for argument in step.arguments]]
        indices = layers.table["index"][[argument.index for argument in step.arguments]]
        # The mean of maps is the map of the mean.
        step_input += layers.linear["took"](shares @ joint.states)
        step_input += layers.linear["took_for"](slots.mean(0)) + (kinds + indices).mean(0)
        return step_input
