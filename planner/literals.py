"""The words of a question, and the text literals of a plan."""

from __future__ import annotations

from dataclasses import dataclass

from casewright.planner.plan import Literal, Plan, Step
from casewright.planner.spans import WORD

#: Between these, a literal does not go on.
_BREAK = frozenset(".?!;:\n()")


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a question, its first character and the one past its last, a break before it."""

    text: str
    start: int
    end: int
    after_break: bool


def words_of(question: str) -> list[Word]:
    """Split a question into words."""
    words: list[Word] = []
    end = 0
    for match in WORD.finditer(question):
        gap = question[end : match.start()]
        broken = any(char in _BREAK for char in gap) and bool(words)
        words.append(Word(match[0], match.start(), match.end(), broken))
        end = match.end()
    return words


def text_literals(plan: Plan) -> list[tuple[int, str, str]]:
    """Return the text literals of a plan: step index, parameter, text."""
    return [
        (index, name, value.value)
        for index, step in enumerate(plan.steps)
        for name, value in step.arguments
        if isinstance(value, Literal) and isinstance(value.value, str)
    ]


def with_literals(plan: Plan, texts: dict[tuple[int, str], str]) -> Plan:
    """Return the plan with these texts, by step index and parameter, as its literals."""
    steps = []
    for index, step in enumerate(plan.steps):
        arguments = tuple(
            (name, Literal(texts[index, name]) if (index, name) in texts else value)
            for name, value in step.arguments
        )
        steps.append(Step(step.tool, arguments))
    return Plan(tuple(steps))
