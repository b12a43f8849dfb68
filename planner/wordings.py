"""Reuses a case's plan for a message that differs from the case's question only in literals."""

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
    """Place of a literal in a question; ``arguments`` (step index, parameter) have this literal."""

    arguments: tuple[tuple[int, str], ...]
    max_words: int


@dataclass(frozen=True, slots=True)
class _Wording:
    """Plan case; ``parts`` are its question's words and slots, ``words`` the set of the words."""

    parts: tuple[str | _Slot, ...]
    words: frozenset[str]
    context_fields: frozenset[str]
    plan: Plan


class CaseWordings:
    """Index of plan cases by the words of their questions; the cases must not be follow-ups."""

    def __init__(self, cases: Iterable[Case]) -> None:
        self._wordings: list[_Wording] = []
        self._exact_plans: dict[tuple[tuple[str, ...], frozenset[str]], Plan] = {}
        for case in cases:
            plan = parse_plan(str(case.solution))
            words = _normalized_words(str(case.problem["question"]))
            fields = frozenset(case.metadata.get("context", ()))
            parts = _parts(words, plan)
            part_words = frozenset(part for part in parts if isinstance(part, str))
            self._wordings.append(_Wording(parts, part_words, fields, plan))
            self._exact_plans[words, fields] = plan

    def plan(self, request: PlanRequest) -> Plan | None:
        """Return the plan of the best case that fits, with the message's literals, or ``None``.

        A case fits if the message has the same context fields, and the same words in the same order
        except for literals. Less than half of the message may be literals. The best case is the one
        with the most words.
        """
        words = words_of(request.question)
        normalized_words = tuple(normalized(word.text) for word in words)
        message_words = frozenset(normalized_words)
        fields = frozenset(name for name, value in request.context.items() if value is not None)
        if (plan := self._exact_plans.get((normalized_words, fields))) is not None:
            return plan
        best, best_word_count = None, 0
        for wording in self._wordings:
            if wording.context_fields != fields or not wording.words <= message_words:
                continue
            word_count = sum(isinstance(part, str) for part in wording.parts)
            # If a message is mostly literals, the words between them are weak evidence.
            if word_count <= best_word_count or 2 * word_count <= len(words):
                continue
            slot_ranges = next(_alignments(wording.parts, words, normalized_words, 0), None)
            if slot_ranges is not None:
                best, best_word_count = (wording, slot_ranges), word_count
        if best is None:
            return None
        wording, slot_ranges = best
        texts = {
            argument: request.question[words[first].start : words[end - 1].end]
            for slot, (first, end) in slot_ranges
            for argument in slot.arguments
        }
        return with_literals(wording.plan, texts)


def _normalized_words(text: str) -> tuple[str, ...]:
    return tuple(normalized(word.text) for word in words_of(text))


def _parts(words: Sequence[str], plan: Plan) -> tuple[str | _Slot, ...]:
    """Return a question's words, with slots in place of its plan's literals."""
    parts: list[str | _Slot] = list(words)
    arguments_by_words: dict[tuple[str, ...], list[tuple[int, str]]] = {}
    for step_index, name, text in text_literals(plan):
        arguments_by_words.setdefault(_normalized_words(text), []).append((step_index, name))
    for text_words, arguments in arguments_by_words.items():
        length = len(text_words)
        starts = (n for n in range(len(parts)) if tuple(parts[n : n + length]) == text_words)
        if length and (start := next(starts, None)) is not None:
            # A message's literal may have one word more than the case's.
            parts[start : start + length] = [_Slot(tuple(arguments), max_words=length + 1)]
    return tuple(parts)


def _alignments(
    parts: Sequence[str | _Slot], words: Sequence[Word], normalized_words: Sequence[str], start: int
) -> Iterator[list[tuple[_Slot, tuple[int, int]]]]:
    """Yield each match of the parts and the words from ``start`` on, as the slots' word ranges."""
    if not parts:
        if start == len(words):
            yield []
        return
    part, next_parts = parts[0], parts[1:]
    if isinstance(part, str):
        if start < len(words) and normalized_words[start] == part:
            yield from _alignments(next_parts, words, normalized_words, start + 1)
        return
    for end in range(start + 1, min(start + part.max_words, len(words)) + 1):
        if end > start + 1 and words[end - 1].after_break:
            break
        for next_ranges in _alignments(next_parts, words, normalized_words, end):
            yield [(part, (start, end)), *next_ranges]
