"""Plans of plan cases that a message repeats word by word, but for the texts of their literals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from casewright.planner.literals import Word, text_literals, with_literals, words_of
from casewright.planner.parse import parse_plan
from casewright.planner.plan import Plan
from casewright.planner.request import PlanRequest
from casewright.planner.spans import normalized
from casewright.stores import Case


@dataclass(frozen=True, slots=True)
class Slot:
    """Words of a question that are literals of its plan.

    Attributes:
        places: Arguments that take them: index of the step, parameter.
        most: Most words in their place.
    """

    places: tuple[tuple[int, str], ...]
    most: int


@dataclass(frozen=True, slots=True)
class Wording:
    """Question of a plan case with its literals left open.

    Attributes:
        parts: Its words in one case, and slots.
        fixed: The words.
        fields: Names of the context's fields.
        plan: Its plan.
    """

    parts: tuple[str | Slot, ...]
    fixed: frozenset[str]
    fields: frozenset[str]
    plan: Plan

    @classmethod
    def of(cls, case: Case) -> Wording:
        """Return the wording of a plan case."""
        plan = parse_plan(str(case.solution))
        words = [normalized(word.text) for word in words_of(str(case.problem["question"]))]
        parts: list[str | Slot] = list(words)
        by_text: dict[tuple[str, ...], list[tuple[int, str]]] = {}
        for step, name, text in text_literals(plan):
            own = tuple(normalized(word.text) for word in words_of(text))
            by_text.setdefault(own, []).append((step, name))
        for own, places in by_text.items():
            at = next((n for n in range(len(parts)) if tuple(parts[n : n + len(own)]) == own), None)
            if own and at is not None:
                parts[at : at + len(own)] = [Slot(tuple(places), len(own) + 1)]
        fixed = frozenset(part for part in parts if isinstance(part, str))
        return cls(tuple(parts), fixed, frozenset(case.metadata.get("context", ())), plan)


class CaseWordings:
    """Plan cases by the words of their questions.

    Args:
        cases: Plan cases, none of them a follow-up's.
    """

    def __init__(self, cases: Iterable[Case]) -> None:
        self._wordings: list[Wording] = []
        self._same: dict[tuple[tuple[str, ...], frozenset[str]], Plan] = {}
        for case in cases:
            wording = Wording.of(case)
            self._wordings.append(wording)
            words = words_of(str(case.problem["question"]))
            key = tuple(normalized(word.text) for word in words), wording.fields
            self._same[key] = wording.plan

    def plan(self, request: PlanRequest) -> Plan | None:
        """Return the plan of the case that shares most words with a message, with its literals.

        The context's fields are the same, and all words that are no literals, more than half of the
        message, or all words; ``None`` without such a case.
        """
        words = words_of(request.question)
        plain = [normalized(word.text) for word in words]
        present = frozenset(plain)
        fields = frozenset(name for name, value in request.context.items() if value is not None)
        if (plan := self._same.get((tuple(plain), fields))) is not None:
            return plan
        best, shared = None, 0
        for wording in self._wordings:
            if wording.fields != fields or not wording.fixed <= present:
                continue
            count = sum(isinstance(part, str) for part in wording.parts)
            # Where literals are most of a message, the words between them say little.
            if count <= shared or 2 * count <= len(words):
                continue
            spans = next(_spans(wording.parts, words, plain, 0), None)
            if spans is not None:
                best, shared = (wording, spans), count
        if best is None:
            return None
        wording, spans = best
        texts = {
            place: request.question[words[first].start : words[last - 1].end]
            for slot, (first, last) in spans
            for place in slot.places
        }
        return with_literals(wording.plan, texts)


Spans = list[tuple[Slot, tuple[int, int]]]


def _spans(
    parts: Sequence[str | Slot], words: Sequence[Word], plain: Sequence[str], at: int
) -> Iterator[Spans]:
    """Yield the first words and those past the last of all slots, where the others are the same."""
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
