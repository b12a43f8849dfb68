"""The words at which a toolbox's plan cases begin and end their spans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from casewright.planner.parser.arrays import ReadCase
from casewright.planner.parser.message import Message
from casewright.planner.parser.plan_reading import SPAN, ReadStep

#: Minimum number of plan cases with a word at the end of a span or beside it, and minimum share of
#: these that agree. On the validation toolboxes and own_rail no plan becomes wrong by it.
MIN_CASES, AGREEING = 4, 0.8


class SpanEnds:
    """Moves the ends of spans by one word as the plan cases have it.

    The network reads few conventions from cases: it was trained to leave articles out, and keeps
    to this whatever a domain's annotated messages do.
    """

    def __init__(self, cases: Sequence[ReadCase]) -> None:
        #: By end (first, last word) and word: the numbers of spans with the word inside, outside.
        self._inside: tuple[Counter[str], Counter[str]] = Counter(), Counter()
        self._outside: tuple[Counter[str], Counter[str]] = Counter(), Counter()
        for message, steps in cases:
            words = _words(message)
            for first, last in (a.spans[0] for s in steps for a in s.arguments if a.kind == SPAN):
                self._inside[0][words[first]] += 1
                self._inside[1][words[last]] += 1
                self._outside[0].update(words[first - 1 : first] if first else ())
                self._outside[1].update(words[last + 1 : last + 2])

    def moved(self, steps: Sequence[ReadStep], message: Message) -> tuple[ReadStep, ...]:
        """Return the steps of a message's plan with moved spans."""
        words = _words(message)
        return tuple(
            replace(
                step,
                arguments=tuple(
                    replace(argument, spans=(self._moved(*argument.spans[0], words),))
                    if argument.kind == SPAN
                    else argument
                    for argument in step.arguments
                ),
            )
            for step in steps
        )

    def _moved(self, first: int, last: int, words: Sequence[str]) -> tuple[int, int]:
        if first and self._share_inside(0, words[first - 1]) >= AGREEING:
            first -= 1
        elif first < last and self._share_inside(0, words[first]) <= 1 - AGREEING:
            first += 1
        if last + 1 < len(words) and self._share_inside(1, words[last + 1]) >= AGREEING:
            last += 1
        elif first < last and self._share_inside(1, words[last]) <= 1 - AGREEING:
            last -= 1
        return first, last

    def _share_inside(self, end: int, word: str) -> float:
        """Return the share of spans that include a word at this end; 0.5 if there are too few."""
        inside, outside = self._inside[end][word], self._outside[end][word]
        return inside / (inside + outside) if inside + outside >= MIN_CASES else 0.5


def _words(message: Message) -> list[str]:
    return [message.question[start:end] for start, end in message.words]
