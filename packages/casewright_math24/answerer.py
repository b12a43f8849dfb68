"""From a card's image to a checked answer: read, retrieve, reuse or ask, revise, retain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from casewright_math24.answer import Check, check
from casewright_math24.card_reader import CardReader, CardReading
from casewright_math24.cases import media_type, plans_of, puzzle_key, solved_case
from casewright_math24.dialogue import tries
from casewright_math24.prompts import prompt
from casewright_math24.proof import product_of_pairs
from casewright_math24.puzzle import Problem, problem_of
from casewright_math24.reuse import attempts
from casewright.planner.chat_text import Chat
from casewright.stores import Binary, CaseStore, Hit, Retained

#: Cases that are looked at; the nearest one's plans are tried first.
NEAREST = 3
#: First attempt, and one that is told what was wrong with it.
ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class CardAnswer:
    """What became of a card.

    Attributes:
        reading: What was read.
        problem: The numbers, ascending.
        hits: The nearest cases of other puzzles.
        answered_by: ``reuse``, or the chat model's name.
        checks: Each attempt, checked; the last one counts.
        retained: What became of it as a case; ``None`` where it was not to be kept, is not right,
            or is no product of two pairs.
    """

    reading: CardReading
    problem: Problem
    hits: Sequence[Hit]
    answered_by: str
    checks: Sequence[Check]
    retained: Retained | None = None

    @property
    def right(self) -> bool:
        """Whether the answer is proved."""
        return self.checks[-1].right


class CardAnswerer:
    """Answers cards by the cases of a store.

    Args:
        store: Of ``puzzle_schema``.
        reader: Reads cards.
        chat: A chat model; without one the plans of the nearest cases are carried over.
        name: The chat model's name.
    """

    def __init__(
        self,
        store: CaseStore,
        reader: CardReader,
        chat: Chat | None = None,
        name: str = "reuse",
    ) -> None:
        self._store = store
        self._reader = reader
        self._chat = chat
        self._name = name

    def answer(self, image: bytes | Path, *, retain: bool = False) -> CardAnswer:
        """Answer one card.

        Args:
            image: The image file, or its bytes.
            retain: Whether an answer that is proved becomes a case.

        Raises:
            InputError: It is no image, a damaged one, or shows no card; nothing is retained then.
        """
        reading = self._reader.read(image)
        data = image.read_bytes() if isinstance(image, Path) else image
        problem = problem_of(reading.numbers)
        # As in the paper's protocol, a puzzle is no case of its own.
        apart = {"puzzle": {"not": puzzle_key(problem)}}
        hits = self._store.search({"card": Binary(media_type(data), data)}, NEAREST, where=apart)
        plans = list(dict.fromkeys(plan for hit in hits for plan in plans_of(hit.case)))
        if self._chat is None:
            tried = attempts(problem, plans)
        else:
            tried = tries(self._chat, prompt(problem, "top" if plans else "none", plans), problem)
        checks: list[Check] = []
        for expression in islice(tried, ATTEMPTS):
            told = check(expression, problem)
            if not expression and self._chat is None:
                told = replace(
                    told, why=f"The {_nth(len(checks))} plan leads nowhere with these numbers."
                )
            checks.append(told)
            if checks[-1].right:
                break
        checks = checks or [Check("", False, "No case was found to carry a plan over from.")]
        found = CardAnswer(reading, problem, hits, self._name, checks)
        if not (retain and found.right):
            return found
        # A case is a plan to carry over: an answer of another form has none to keep.
        proof = product_of_pairs(checks[-1].expression, problem)
        if proof is None:
            return found
        return replace(found, retained=self._store.retain(solved_case(data, problem, [proof])))


def _nth(place: int) -> str:
    return "nearest case's" if not place else "next"
