"""Reuse of the plan of a case whose question equals the message except for literals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from casewright.planner.parse import parse_plan
from casewright.planner.plan import Plan, text_literals, with_literals
from casewright.planner.request import PlanRequest
from casewright.planner.spans import Word, normalized, words_of
from casewright.stores import Case


@dataclass(frozen=True, slots=True)
class _Slot:
    """Open literal: its arguments (step index, parameter), and its maximal number of words."""

    arguments: tuple[tuple[int, str], ...]
    most: int


@dataclass(frozen=True, slots=True)
class _Wording:
    """Plan case: question as words and slots, set of its words, context fields, and plan."""

    parts: tuple[str | _Slot, ...]
    fixed: frozenset[str]
    fields: frozenset[str]
    plan: Plan


class CaseWordings:
    """Index of plan cases by the words of their questions.

    Args:
        cases: Plan cases, without follow-up questions.
    """

    def __init__(self, cases: Iterable[Case]) -> None:
        self._wordings: list[_Wording] = []
        self._plans: dict[tuple[tuple[str, ...], frozenset[str]], Plan] = {}
        for case in cases:
            plan = parse_plan(str(case.solution))
            words = _normalized_words(str(case.problem["question"]))
            fields = frozenset(case.metadata.get("context", ()))
            parts = _parts(words, plan)
            fixed = frozenset(part for part in parts if isinstance(part, str))
            self._wordings.append(_Wording(parts, fixed, fields, plan))
            self._plans[words, fields] = plan

    def plan(self, request: PlanRequest) -> Plan | None:
        """Return the plan of the case with most words in common, with the message's literals.

        The case must have the same context fields. Its words without literals must all occur in the
        message, in the same order, and must be more than half of the message. Else return ``None``.
        """
        words = words_of(request.question)
        plain = tuple(normalized(word.text) for word in words)
        present = frozenset(plain)
        fields = frozenset(name for name, value in request.context.items() if value is not None)
        if (plan := self._plans.get((plain, fields))) is not None:
            return plan
        best, most = None, 0
        for wording in self._wordings:
            if wording.fields != fields or not wording.fixed <= present:
                continue
            count = sum(isinstance(part, str) for part in wording.parts)
            # If literals are most of a message, the words between them are weak evidence.
            if count <= most or 2 * count <= len(words):
                continue
            spans = next(_spans(wording.parts, words, plain, 0), None)
            if spans is not None:
                best, most = (wording, spans), count
        if best is None:
            return None
        wording, spans = best
        texts = {
            argument: request.question[words[first].start : words[last - 1].end]
            for slot, (first, last) in spans
            for argument in slot.arguments
        }
        return with_literals(wording.plan, texts)


def _normalized_words(text: str) -> tuple[str, ...]:
    return tuple(normalized(word.text) for word in words_of(text))


def _parts(words: Sequence[str], plan: Plan) -> tuple[str | _Slot, ...]:
    """Return a question's words with slots instead of its plan's literals."""
    parts: list[str | _Slot] = list(words)
    by_text: dict[tuple[str, ...], list[tuple[int, str]]] = {}
    for step, name, text in text_literals(plan):
        by_text.setdefault(_normalized_words(text), []).append((step, name))
    for text_words, arguments in by_text.items():
        size = len(text_words)
        starts = (n for n in range(len(parts)) if tuple(parts[n : n + size]) == text_words)
        if size and (start := next(starts, None)) is not None:
            parts[start : start + size] = [_Slot(tuple(arguments), size + 1)]
    return tuple(parts)


def _spans(
    parts: Sequence[str | _Slot], words: Sequence[Word], plain: Sequence[str], at: int
) -> Iterator[list[tuple[_Slot, tuple[int, int]]]]:
    """Yield the alignments with a message, each the slots with start and end in words."""
    if not parts:
        if at == len(words):
            yield []
        return
    part, rest = parts[0], parts[1:]
    if isinstance(part, str):
        if at < len(words) and plain[at] == part:
            yield from _spans(rest, words, plain, at + 1)
        return
    for end in range(at + 1, min(at + part.most, len(words)) + 1):
        if end > at + 1 and words[end - 1].after_break:
            break
        for others in _spans(rest, words, plain, end):
            yield [(part, (at, end)), *others]
