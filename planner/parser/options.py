"""Masks of the valid values of each argument; with them, the parser writes only valid plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.planner.parser.message import Message
from casewright.planner.parser.plan_reading import NUMBER, PLAIN_COUNT, QUESTION, SPAN, number_for
from casewright.planner.parser.schema import SAME_NAME, Schema
from casewright.tools import NO_EVIDENCE, Parameter, Source

Mask = NDArray[np.bool_]


class OptionMasks:
    """Masks of a toolbox's parameters, True for valid values.

    Attributes:
        plain: Mask of the argument kinds without a node, OMIT to NUMBER (parameters, PLAIN_COUNT).
        choices: Mask of the choices that belong to a parameter (parameters, choices).
        tool_of_result: Index of the tool of each result field (fields,).
        takes_step: True for parameters that may refer to a step (parameters,).
        no_evidence: Index of the tool ``no_evidence``.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        parameters = [parameter for _, parameter in schema.parameters]
        plain = [_plain_mask(parameter) for parameter in parameters]
        self.plain: Mask = np.array(plain, dtype=bool).reshape(-1, PLAIN_COUNT)
        self.choices: Mask = np.zeros((len(parameters), len(schema.choices)), dtype=bool)
        for choice, (parameter, _) in enumerate(schema.choices):
            self.choices[parameter, choice] = True
        self.tool_of_result = np.array([tool for tool, _ in schema.results], dtype=np.int64)
        takes_step = [Source.STEP in parameter.sources for parameter in parameters]
        self.takes_step: Mask = np.array(takes_step, dtype=bool)
        self.no_evidence = [tool.name for tool in schema.tools].index(NO_EVIDENCE.name)
        self._name_relations = schema.name_relations([name for _, name in schema.results])

    def plain_of(self, message: Message) -> Mask:
        """Return ``plain`` without the kinds for which the message has no value."""
        mask = self.plain.copy()
        mask[:, SPAN] &= bool(message.words)
        mask[:, NUMBER] &= self.numbers_of(message).any(1)
        for parameter in np.flatnonzero(mask[:, QUESTION]):
            mask[parameter, QUESTION] = self.schema.parameters[parameter][1].fits(message.question)
        return mask

    def numbers_of(self, message: Message) -> Mask:
        """Return a mask of each parameter's possible numbers (parameters, numbers or 1)."""
        rows = [
            [number_for(parameter, number) is not None for number in message.numbers] or [False]
            for _, parameter in self.schema.parameters
        ]
        return np.array(rows, dtype=bool).reshape(len(rows), max(1, len(message.numbers)))

    def context_of(self, message: Message, context: Mapping[str, Any], column_count: int) -> Mask:
        """Return a mask of each parameter's possible context fields (parameters, column_count)."""
        mask = np.zeros((len(self.schema.parameters), column_count), dtype=bool)
        for row, (_, parameter) in enumerate(self.schema.parameters):
            if Source.CONTEXT in parameter.sources:
                fits = [parameter.fits(context[name]) for name in message.fields]
                mask[row, : len(fits)] = fits
        return mask

    def unrelated_of(self, message: Message) -> Mask:
        """Return a mask of unlikely fields, whose names are unrelated to a parameter's name.

        If no field has the parameter's name, no field is unlikely. The shape is (parameters,
        (context fields or 1) + result fields).
        """
        # Without context fields, the empty name makes one column.
        field_relations = self.schema.name_relations(message.fields or [""])
        relations = np.concatenate([field_relations, self._name_relations], 1)
        unrelated: Mask = (relations == 0) & (relations == SAME_NAME).any(1, keepdims=True)
        return unrelated

    def callable_with(self, has_values: Mask) -> Mask:
        """Return a mask of the tools whose required parameters are all True in ``has_values``."""
        usable = np.ones(len(self.schema.tools), dtype=bool)
        for (tool, parameter), has_value in zip(self.schema.parameters, has_values, strict=True):
            usable[tool] &= has_value or not parameter.required
        return usable

    def results_of(self, earlier_tools: Sequence[int], max_steps: int) -> Mask:
        """Return a mask (max_steps, fields) of the steps' result fields, False for absent steps."""
        tools = [*earlier_tools, *[-1] * max_steps][:max_steps]
        mask: Mask = np.array(tools)[:, None] == self.tool_of_result
        return mask


def _plain_mask(parameter: Parameter) -> list[bool]:
    """Return a flag for each kind from OMIT to NUMBER, True if the parameter allows the kind."""
    sources = parameter.sources
    takes_text = parameter.fits("") and bool(sources & {Source.SPAN, Source.LITERAL})
    return [
        not parameter.required,
        Source.QUESTION in sources,
        Source.BOOLEAN in sources and parameter.fits(True),
        Source.BOOLEAN in sources and parameter.fits(False),
        takes_text,
        Source.NUMBER in sources and parameter.fits(1),
    ]
