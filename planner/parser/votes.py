"""Votes of cases on a toolbox's nodes, weighed by how near their messages are to this one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casewright.planner.parser.arrays import (
    Case,
    case_arrays,
    case_spans,
    context_uses,
    tool_sequences,
)
from casewright.planner.parser.layers import (
    HIDDEN,
    Floats,
    Linear,
    Perceptron,
    Weights,
    softmax,
)
from casewright.planner.parser.schema import Schema


@dataclass(frozen=True, slots=True)
class Known:
    """Cases of one toolbox.

    Attributes:
        keys: Where messages are compared (cases, key).
        vectors: What the messages add to tools (cases, size).
        spans: What the words of arguments add to parameters (spans, size).
        owner: The case of each span.
        of: Whether a span is a parameter's (parameters, spans).
        has: Whether a case calls a tool (tools, cases).
        kinds: Of the arguments (parameters, cases, kinds).
        choices: (choices, cases).
        fields: Result fields (parameters, cases, fields).
        context: Whether a case takes a context field, by its name (parameters, cases).
        pairs: Whether a tool comes after another (cases, tools + 1, tools + 1).
        sequences: See ``arrays.tool_sequences``.
        tool_of: The tool of each parameter.
        parameter_of: The parameter of each choice.
    """

    keys: Floats
    vectors: Floats
    spans: Floats
    owner: NDArray[np.int64]
    of: NDArray[np.bool_]
    has: NDArray[np.bool_]
    kinds: Floats
    choices: Floats
    fields: Floats
    context: dict[str, Floats]
    pairs: Floats
    sequences: NDArray[np.int64]
    tool_of: NDArray[np.int64]
    parameter_of: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Votes:
    """Votes of cases for a message.

    Attributes:
        states: Added to each node of the toolbox (nodes, size).
        weights: Of each case (cases,); they sum to less than one.
        tools: Votes and their evidence (tools, 4).
        kinds: Of each parameter (parameters, KIND_COUNT + 1).
        choices: (choices,).
        fields: (parameters, result fields).
        context: (parameters, context fields).
    """

    states: Floats
    weights: Floats
    tools: Floats
    kinds: Floats
    choices: Floats
    fields: Floats
    context: Floats


class CaseVotes:
    """Weighs cases, and tells every node what they say of it.

    Args:
        weights: Of the whole network, by name.
    """

    def __init__(self, weights: Weights) -> None:
        self._key = weights["cases.key.weight"].T
        self._sharpness = np.exp(weights["cases.sharpness"])
        self._nothing = weights["cases.nothing"] * self._sharpness
        self._vector, self._span = Linear(weights, "cases.vector"), Linear(weights, "cases.span")
        self._tool = Perceptron(weights, "cases.tool")
        self._parameter = Perceptron(weights, "cases.parameter")
        self._choice = Perceptron(weights, "cases.choice")
        self._field = Perceptron(weights, "cases.field")

    def keys(self, vectors: Floats) -> Floats:
        """Return where messages are compared (n, key), unit vectors.

        Args:
            vectors: Means of their tokens' states (n, encoder).
        """
        keys = vectors @ self._key
        unit: Floats = keys / np.linalg.norm(keys, axis=-1, keepdims=True).clip(1e-12)
        return unit

    def known(
        self, schema: Schema, cases: Sequence[Case], vectors: Floats, words: Sequence[Floats]
    ) -> Known:
        """Return cases as they are weighed.

        Args:
            schema: The toolbox.
            cases: At least one message with its plan.
            vectors: Means of their tokens' states (cases, encoder).
            words: Of each, the states of its words (words, encoder).
        """
        arrays = case_arrays(schema, cases)
        spans = case_spans(cases)
        means = [words[row][first : last + 1].mean(0) for row, _, first, last in spans]
        of = np.array([parameter for _, parameter, _, _ in spans], dtype=np.int64)
        return Known(
            keys=self.keys(vectors),
            vectors=self._vector(vectors),
            spans=self._span(np.array(means, np.float32).reshape(-1, vectors.shape[1])),
            owner=np.array([row for row, *_ in spans], dtype=np.int64),
            of=of == np.arange(len(schema.parameters))[:, None],
            has=arrays["has"].T > 0,
            kinds=arrays["kinds"].swapaxes(0, 1),
            choices=arrays["choices"].T,
            fields=arrays["fields"].swapaxes(0, 1),
            context=context_uses(schema, cases),
            pairs=arrays["pairs"],
            sequences=tool_sequences(cases, len(schema.tools)),
            tool_of=np.array([tool for tool, _ in schema.parameters], dtype=np.int64),
            parameter_of=np.array([parameter for parameter, _ in schema.choices], dtype=np.int64),
        )

    def __call__(self, vector: Floats, known: Known, fields: Sequence[str]) -> Votes:
        """Return what cases say.

        Args:
            vector: Mean of the message's token states (encoder,).
            known: The cases.
            fields: Names of the message's context fields.
        """
        likeness = known.keys @ self.keys(vector[None])[0]
        scores = likeness * self._sharpness
        weights = softmax(np.append(scores, self._nothing))[:-1]
        by_tool = softmax(np.where(known.has, scores, HIDDEN)) * known.has
        vote = known.has @ weights
        best = np.where(known.has, likeness, -1).max(-1)
        count = np.log1p(known.has.sum(-1)) / 3
        tools = np.stack([vote, best, count, np.log(vote + 0.02) / 4], -1).astype(np.float32)
        by_parameter = by_tool[known.tool_of]
        kinds = (by_parameter[:, None] @ known.kinds)[:, 0]
        kinds = np.concatenate([kinds, tools[known.tool_of, 2:3]], -1)
        choices = (by_parameter[known.parameter_of] * known.choices).sum(-1)
        results = (by_parameter[:, None] @ known.fields)[:, 0]
        context = np.zeros((len(by_parameter), max(1, len(fields))), np.float32)
        for number, name in enumerate(fields):
            if name in known.context:
                context[:, number] = (by_parameter * known.context[name]).sum(-1)
        shares = by_parameter[:, known.owner] * known.of
        shares = shares / shares.sum(-1, keepdims=True).clip(1e-6)
        likeliest = results.max(0, initial=0)
        states = [
            self._tool(tools) + by_tool @ known.vectors,
            self._parameter(kinds) + shares @ known.spans,
            self._choice(with_sign(choices)),
            self._field(with_sign(likeliest)),
        ]
        return Votes(np.concatenate(states), weights, tools, kinds, choices, results, context)


def with_sign(votes: Floats) -> Floats:
    """Return votes (…) and whether there are any, (…, 2)."""
    return np.stack([votes, (votes > 0).astype(np.float32)], -1)
