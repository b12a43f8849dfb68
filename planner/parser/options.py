"""Masks of the valid values of each argument, which let the parser write only valid plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.planner.parser.message import Message
from casewright.planner.parser.plan_reading import NUMBER, PLAIN, QUESTION, SPAN, number_for
from casewright.planner.parser.schema import SAME_NAME, Schema
from casewright.tools import NO_EVIDENCE, Parameter, Source

Mask = NDArray[np.bool_]


class Options:
    """Masks for a toolbox, True for valid values.

    Attributes:
        plain: Mask of the PLAIN kinds (parameters, PLAIN).
        choices: Mask of choices (parameters, choices).
        result_tool: Number of the tool of each result field (fields,).
        steps: True for parameters that may refer to a step (parameters,).
        nothing: Number of the tool ``no_evidence``.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        parameters = [parameter for _, parameter in schema.parameters]
        plain = [_plain_mask(parameter) for parameter in parameters]
        self.plain: Mask = np.array(plain, dtype=bool).reshape(-1, PLAIN)
        self.choices: Mask = np.zeros((len(parameters), len(schema.choices)), dtype=bool)
        for choice, (number, _) in enumerate(schema.choices):
            self.choices[number, choice] = True
        self.result_tool = np.array([tool for tool, _ in schema.results], dtype=np.int64)
        self.steps: Mask = np.array(
            [Source.STEP in parameter.sources for parameter in parameters], dtype=bool
        )
        self.nothing = next(
            n for n, tool in enumerate(schema.tools) if tool.name == NO_EVIDENCE.name
        )
        self._name_relations = schema.name_relations([name for _, name in schema.results])

    def plain_of(self, message: Message) -> Mask:
        """Return ``plain`` without the kinds for which the message has no words or number."""
        mask = self.plain.copy()
        mask[:, SPAN] &= bool(message.words)
        mask[:, NUMBER] &= self.numbers_of(message).any(1)
        for slot in np.flatnonzero(mask[:, QUESTION]):
            mask[slot, QUESTION] = self.schema.parameters[slot][1].fits(message.question)
        return mask

    def numbers_of(self, message: Message) -> Mask:
        """Return True for the numbers that a parameter may take (parameters, max(1, numbers))."""
        rows = [
            [number_for(parameter, number) is not None for number in message.numbers] or [False]
            for _, parameter in self.schema.parameters
        ]
        return np.array(rows, dtype=bool).reshape(len(rows), max(1, len(message.numbers)))

    def context_of(self, message: Message, context: Mapping[str, Any], width: int) -> Mask:
        """Return True for the context fields that a parameter may take (parameters, width)."""
        mask = np.zeros((len(self.schema.parameters), width), dtype=bool)
        for number, (_, parameter) in enumerate(self.schema.parameters):
            if Source.CONTEXT in parameter.sources:
                fits = [parameter.fits(context[name]) for name in message.fields]
                mask[number, : len(fits)] = fits
        return mask

    def unlike_of(self, message: Message) -> Mask:
        """Return True for fields with an unlike name, if another field has the parameter's name.

        Shape (parameters, max(1, context fields) + result fields).
        """
        of_fields = self.schema.name_relations(message.fields or [""])
        relations = np.concatenate([of_fields, self._name_relations], 1)
        unlike: Mask = (relations == 0) & (relations == SAME_NAME).any(1, keepdims=True)
        return unlike

    def callable_with(self, has_values: Mask) -> Mask:
        """Return True for tools that may be called, given True for parameters with a value."""
        usable = np.ones(len(self.schema.tools), dtype=bool)
        for (tool, parameter), has_value in zip(self.schema.parameters, has_values, strict=True):
            usable[tool] &= has_value or not parameter.required
        return usable

    def results_of(self, before: Sequence[int], places: int) -> Mask:
        """Return True for result fields of the steps with the tools ``before`` (places, fields)."""
        tools = [*before, *[-1] * places][:places]
        mask: Mask = np.array(tools)[:, None] == self.result_tool
        return mask


def _plain_mask(parameter: Parameter) -> list[bool]:
    """Return True for the kinds that a parameter allows, in the order OMIT to NUMBER."""
    sources = parameter.sources
    text = parameter.fits("") and bool(sources & {Source.SPAN, Source.LITERAL})
    return [
        not parameter.required,
        Source.QUESTION in sources,
        Source.BOOLEAN in sources and parameter.fits(True),
        Source.BOOLEAN in sources and parameter.fits(False),
        text,
        Source.NUMBER in sources and parameter.fits(1),
    ]
