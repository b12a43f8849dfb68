"""Finding the words of a question that an argument is made of.

Each word is scored by how often it stood inside and outside the literals of known plans; the
literal of a new question is the run of adjacent words with the highest sum (Kadane's algorithm,
linear in the question). No language model.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from casewright.planner.plan import Literal, Plan, Step
from casewright.planner.spans import WORD, is_span, normalized

#: Between these, a literal does not go on.
_BREAK = frozenset(".?!;:\n()")
#: Pseudo-counts of a word that was seen neither inside nor outside a literal: such a word is
#: rather a thing's name than filler.
_PRIOR_INSIDE, _PRIOR_OUTSIDE = 0.8, 0.5
#: What a further word costs, so that ties go to the shorter literal.
_LENGTH_COST = 0.05


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a question: its text, where it stands, and whether a break comes before it."""

    text: str
    start: int
    end: int
    after_break: bool


def words_of(question: str) -> list[Word]:
    """Split a question into words."""
    found: list[Word] = []
    end = 0
    for match in WORD.finditer(question):
        gap = question[end : match.start()]
        broken = any(char in _BREAK for char in gap) and bool(found)
        found.append(Word(match[0], match.start(), match.end(), broken))
        end = match.end()
    return found


def text_literals(plan: Plan) -> list[tuple[int, str, str]]:
    """Return the text literals of a plan: step index, parameter, text."""
    return [
        (index, name, value.value)
        for index, step in enumerate(plan.steps)
        for name, value in step.arguments
        if isinstance(value, Literal) and isinstance(value.value, str)
    ]


class LiteralFinder:
    """Knows, from annotated plans, which words literals are made of."""

    def __init__(self, examples: Iterable[tuple[str, Plan]]) -> None:
        self._inside: Counter[str] = Counter()
        self._outside: Counter[str] = Counter()
        for question, plan in examples:
            literals = [text for _, _, text in text_literals(plan) if is_span(text, question)]
            if not literals:
                continue
            covered: Counter[str] = Counter()
            for text in literals:
                covered.update(normalized(word.text) for word in words_of(text))
            present = Counter(normalized(word.text) for word in words_of(question))
            self._inside.update(covered)
            self._outside.update(present - covered)

    def score(self, word: str) -> float:
        """Return the log-odds of a word to stand inside a literal."""
        key = normalized(word)
        inside = self._inside[key] + _PRIOR_INSIDE
        outside = self._outside[key] + _PRIOR_OUTSIDE
        return math.log(inside / outside) - _LENGTH_COST

    def find(self, question: str, count: int, filler: Iterable[str] = ()) -> list[str]:
        """Return up to ``count`` disjoint literals, in the order in which they stand.

        Args:
            question: Where to look.
            count: How many literals the plan needs.
            filler: Words that stood outside the literals of a similar question; they count as
                filler here too.
        """
        words = words_of(question)
        known_filler = {normalized(word) for word in filler}
        scores = [
            self.score(w.text) - (1.0 if normalized(w.text) in known_filler else 0.0) for w in words
        ]
        found: list[tuple[int, int]] = []
        for _ in range(count):
            best = _best_run(words, scores)
            if best is None:
                break
            found.append(best)
            for position in range(*best):
                scores[position] = -math.inf
        return [question[words[a].start : words[b - 1].end] for a, b in sorted(found)]


def _best_run(words: list[Word], scores: list[float]) -> tuple[int, int] | None:
    best, best_run = 0.0, None
    total, start = 0.0, 0
    for position, (word, score) in enumerate(zip(words, scores, strict=True)):
        if total <= 0 or word.after_break:
            total, start = 0.0, position
        total += score
        if total > best:
            best, best_run = total, (start, position + 1)
    return best_run


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
