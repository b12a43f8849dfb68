"""Applies conventions of plan cases to plans: the ends of spans, and digits as numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import regex as re

from casewright.planner.parser.arrays import ReadCase
from casewright.planner.parser.message import Message
from casewright.planner.parser.plan_reading import NUMBER, SPAN, Argument, ReadStep
from casewright.planner.parser.schema import Schema
from casewright.tools import Parameter, Source

#: Minimum number of plan cases with a word at an end of a span; fewer cases show no convention.
MIN_CASE_COUNT = 4
#: Minimum share of these cases that include the word in the span, or that leave it out.
MIN_AGREEMENT = 0.8
_START, _END = 0, 1  # The ends of a span.
_DIGITS = re.compile("[1-9][0-9]{0,14}")
#: Parts of a parameter's name or description which show that digits are a code, not a quantity.
_CODE = re.compile(
    r"code|numbers?\b|\bn[or]\b|number$|zip|post|phone|isbn|sku|\bpin\b|\bid\b|identifier|serial",
    re.IGNORECASE,
)


class CaseConventions:
    """Adapts a plan's arguments to the conventions of plan cases and of the tools' examples.

    The network adopts few conventions of plan cases. For example, its spans leave out articles, as
    in its training, even if the spans of a domain's annotated messages include articles.
    """

    def __init__(self, schema: Schema, cases: Sequence[ReadCase]) -> None:
        self._schema = schema
        #: For both ends of spans, numbers of cases with a word just inside and just outside a span.
        self._inside: tuple[Counter[str], Counter[str]] = Counter(), Counter()
        self._outside: tuple[Counter[str], Counter[str]] = Counter(), Counter()
        #: Indices of the parameters whose argument is a text of digits in some case.
        self._digit_texts: set[int] = set()
        for message, steps in cases:
            words = _words(message)
            spans = set()
            for argument in (a for step in steps for a in step.arguments if a.kind == SPAN):
                spans.add(argument.spans[0])
                if _DIGITS.fullmatch(message.text(*argument.spans[0])):
                    self._digit_texts.add(argument.parameter)
            # A span of a single word does not show which words a value begins or ends with.
            long_spans = [(first, last) for first, last in spans if first < last]
            self._inside[_START].update({words[first] for first, _ in long_spans})
            self._inside[_END].update({words[last] for _, last in long_spans})
            self._outside[_START].update({words[first - 1] for first, _ in spans if first})
            next_words = {words[last + 1] for _, last in spans if last + 1 < len(words)}
            self._outside[_END].update(next_words)

    def apply(self, steps: Sequence[ReadStep], message: Message) -> tuple[ReadStep, ...]:
        """Return the steps of a message's plan, adapted to the conventions."""
        words = _words(message)
        spans = [a.spans[0] for step in steps for a in step.arguments if a.kind == SPAN]
        span_words = {word for first, last in spans for word in range(first, last + 1)}
        adapted = []
        for step in steps:
            arguments = (self._adapt(a, message, words, span_words) for a in step.arguments)
            adapted.append(replace(step, arguments=tuple(arguments)))
        return tuple(adapted)

    def _adapt(
        self, argument: Argument, message: Message, words: Sequence[str], span_words: set[int]
    ) -> Argument:
        """Return the argument; a span may get other ends or become a number."""
        if argument.kind != SPAN:
            return argument
        first, last = argument.spans[0]
        parameter = self._schema.parameters[argument.parameter][1]
        if _digits_mean_number(parameter) and argument.parameter not in self._digit_texts:
            for index, number in enumerate(message.numbers):
                covers_span = (number.first, number.last) == (first, last)
                if covers_span and _DIGITS.fullmatch(message.text(first, last)):
                    return replace(argument, kind=NUMBER, numbers=(index,), spans=())
        if first - 1 not in span_words and self._extends_span(_START, words, first - 1, message):
            first -= 1
        elif first < last and self._share_inside(_START, words[first]) <= 1 - MIN_AGREEMENT:
            first += 1
        if last + 1 not in span_words and self._extends_span(_END, words, last + 1, message):
            last += 1
        elif first < last and self._share_inside(_END, words[last]) <= 1 - MIN_AGREEMENT:
            last -= 1
        return replace(argument, spans=((first, last),))

    def _extends_span(self, end: int, words: Sequence[str], index: int, message: Message) -> bool:
        """Return True if cases include this word at this end, and a space joins it to the span."""
        if not 0 <= index < len(words) or self._share_inside(end, words[index]) < MIN_AGREEMENT:
            return False
        left = index if end == _START else index - 1
        gap = message.question[message.words[left][1] : message.words[left + 1][0]]
        return gap == " "

    def _share_inside(self, end: int, word: str) -> float:
        """Return the share of cases that include a word at this end; 0.5 for too few cases."""
        inside, outside = self._inside[end][word], self._outside[end][word]
        return inside / (inside + outside) if inside + outside >= MIN_CASE_COUNT else 0.5


def _digits_mean_number(parameter: Parameter) -> bool:
    """Return True if a parameter takes texts and numbers, and digits probably mean a number."""
    name = re.sub("[_-]+", " ", parameter.name)
    is_code = _CODE.search(name) or _CODE.search(parameter.description)
    return parameter.kind == "any" and Source.NUMBER in parameter.sources and not is_code


def _words(message: Message) -> list[str]:
    return [message.question[start:end] for start, end in message.words]
