"""Computes the votes of plan cases for a message, without torch; similar cases weigh more."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from casewright.planner.parser.arrays import (
    CaseData,
    ReadCase,
    Votes,
    case_arrays,
    case_spans,
    context_uses,
    tool_sequences,
)
from casewright.planner.parser.graphs import Perceptrons
from casewright.planner.parser.layers import MASKED_SCORE, Floats, Linear, Weights, softmax
from casewright.planner.parser.schema import Schema


class CaseVoting:
    """Computes the weights of plan cases, and the cases' votes for a toolbox's nodes."""

    def __init__(self, weights: Weights) -> None:
        self._key = weights["cases.key.weight"].T
        self._sharpness = np.exp(weights["cases.sharpness"])
        # A case without votes, which lowers the weights of cases that are not similar.
        self._virtual_score = weights["cases.nothing"] * self._sharpness
        self._vector, self._span = Linear(weights, "cases.vector"), Linear(weights, "cases.span")
        nodes = "cases.tool", "cases.parameter", "cases.choice", "cases.field"
        self._node_layers = Perceptrons(weights, *nodes)

    def keys(self, vectors: Floats) -> Floats:
        """Return keys, which are unit vectors (n, key), for mean token states (n, encoder)."""
        keys = vectors @ self._key
        unit: Floats = keys / np.linalg.norm(keys, axis=-1, keepdims=True).clip(1e-12)
        return unit

    def case_data(
        self, schema: Schema, cases: Sequence[ReadCase], vectors: Floats, words: Sequence[Floats]
    ) -> CaseData:
        """Return a toolbox's cases for the computation of votes, as arrays (see ``CaseData``).

        Args:
            cases: At least one message with its plan.
            vectors: Means of the messages' token states (cases, encoder).
            words: States of the words of each message (words, encoder).
        """
        arrays = case_arrays(schema, cases)
        spans = case_spans(cases)
        span_means = [words[case][first : last + 1].mean(0) for case, _, first, last in spans]
        return CaseData(
            keys=self.keys(vectors),
            vectors=self._vector(vectors),
            spans=self._span(np.array(span_means, np.float32).reshape(-1, vectors.shape[1])),
            span_case=spans[:, 0],
            span_parameter=spans[:, 1] == np.arange(len(schema.parameters))[:, None],
            calls=arrays["calls"].T > 0,
            kinds=arrays["kinds"].swapaxes(0, 1),
            choices=arrays["choices"].T,
            fields=arrays["fields"].swapaxes(0, 1),
            context=context_uses(schema, cases),
            pairs=arrays["pairs"],
            sequences=tool_sequences(cases, len(schema.tools)),
            tool_of=np.array([tool for tool, _ in schema.parameters], dtype=np.int64),
            parameter_of=np.array([parameter for parameter, _ in schema.choices], dtype=np.int64),
        )

    def __call__(self, vector: Floats, cases: CaseData, fields: Sequence[str]) -> Votes[Floats]:
        """Return the cases' votes for a message.

        Args:
            vector: Mean of the message's token states (encoder,).
            fields: Names of the message's context fields.
        """
        cosines = cases.keys @ self.keys(vector[None])[0]
        scores = cosines * self._sharpness
        weights = softmax(np.append(scores, self._virtual_score))[:-1]
        tool_weights = softmax(np.where(cases.calls, scores, MASKED_SCORE)) * cases.calls
        # The four measures of ``Votes.tools``; the constants are those of ``case_network``.
        total_weight = cases.calls @ weights
        best_cosine = np.where(cases.calls, cosines, -1).max(-1)
        log_count = np.log1p(cases.calls.sum(-1)) / 3
        log_weight = np.log(total_weight + 0.02) / 4
        tools = np.stack([total_weight, best_cosine, log_count, log_weight], -1).astype(np.float32)
        parameter_weights = tool_weights[cases.tool_of]
        kinds = (parameter_weights[:, None] @ cases.kinds)[:, 0]
        # The last column is ``log_count``.
        kinds = np.concatenate([kinds, tools[cases.tool_of, 2:3]], -1)
        choices = (parameter_weights[cases.parameter_of] * cases.choices).sum(-1)
        field_votes = (parameter_weights[:, None] @ cases.fields)[:, 0]
        context = np.zeros((len(parameter_weights), max(1, len(fields))), np.float32)
        for field, name in enumerate(fields):
            if name in cases.context:
                context[:, field] = (parameter_weights * cases.context[name]).sum(-1)
        span_weights = parameter_weights[:, cases.span_case] * cases.span_parameter
        span_weights = span_weights / span_weights.sum(-1, keepdims=True).clip(1e-6)
        best_votes = field_votes.max(0, initial=0)
        states = list(self._node_layers(tools, kinds, with_sign(choices), with_sign(best_votes)))
        states[0] += tool_weights @ cases.vectors
        states[1] += span_weights @ cases.spans
        return Votes(np.concatenate(states), weights, tools, kinds, choices, field_votes, context)


def with_sign(votes: Floats) -> Floats:
    """Return votes (…) as pairs (…, 2): the vote, and 1 if the vote is positive, else 0."""
    return np.stack([votes, (votes > 0).astype(np.float32)], -1)
