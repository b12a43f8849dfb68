"""Masks of what each argument may be under the plan language, by which every plan is valid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.planner.parser.message import Message, Number
from casewright.planner.parser.plan_reading import PLAIN
from casewright.planner.parser.schema import Schema
from casewright.tools import NO_EVIDENCE, Parameter, Source

Mask = NDArray[np.bool_]


class Options:
    """Masks for a toolbox.

    Args:
        schema: The toolbox.

    Attributes:
        plain: Of complete kinds and those that point to words (parameters, PLAIN).
        choices: Of choices (parameters, choices).
        owner: The tool of each result field, array (fields,).
        steps: Which parameters may refer to a step (parameters,).
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        parameters = [parameter for _, parameter in schema.parameters]
        plain = [_plain(parameter) for parameter in parameters]
        self.plain: Mask = np.array(plain, dtype=bool).reshape(-1, PLAIN)
        self.choices: Mask = np.zeros((len(parameters), len(schema.choices)), dtype=bool)
        for choice, (number, _) in enumerate(schema.choices):
            self.choices[number, choice] = True
        self.owner = np.array([tool for tool, _ in schema.results], dtype=np.int64)
        self.steps: Mask = np.array(
            [Source.STEP in parameter.sources for parameter in parameters], dtype=bool
        )
        self.nothing = next(
            n for n, tool in enumerate(schema.tools) if tool.name == NO_EVIDENCE.name
        )

    def plain_of(self, message: Message) -> Mask:
        """Return ``plain`` for a message: spans need words, numbers one that fits."""
        mask = self.plain.copy()
        mask[:, 4] &= bool(message.words)
        for number, (_, parameter) in enumerate(self.schema.parameters):
            if mask[number, 5]:
                mask[number, 5] = any(number_for(parameter, n) is not None for n in message.numbers)
            mask[number, 1] &= parameter.fits(message.question)
        return mask

    def context_of(self, message: Message, context: Mapping[str, Any], width: int) -> Mask:
        """Return which context fields each parameter may take (parameters, width)."""
        mask = np.zeros((len(self.schema.parameters), width), dtype=bool)
        for number, (_, parameter) in enumerate(self.schema.parameters):
            if Source.CONTEXT in parameter.sources:
                for field, name in enumerate(message.fields):
                    mask[number, field] = parameter.fits(context[name])
        return mask

    def callable_with(self, able: Mask) -> Mask:
        """Return which tools may be called (tools,), by what can be given (parameters,)."""
        usable = np.ones(len(self.schema.tools), dtype=bool)
        for (tool, parameter), given in zip(self.schema.parameters, able, strict=True):
            usable[tool] &= given or not parameter.required
        return usable

    def results_of(self, parameter: int, before: Sequence[int], places: int) -> Mask:
        """Return which results of the steps before a parameter may take (places, fields)."""
        mask = np.zeros((places, len(self.owner)), dtype=bool)
        if self.steps[parameter]:
            for step, tool in enumerate(before[:places]):
                mask[step] = self.owner == tool
        return mask


def number_for(parameter: Parameter, number: Number) -> int | float | None:
    """Return a number as a parameter's literal; ``None`` where it does not fit."""
    if number.value == int(number.value):
        return int(number.value)
    return number.value if parameter.fits(number.value) else None


def _plain(parameter: Parameter) -> list[bool]:
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
