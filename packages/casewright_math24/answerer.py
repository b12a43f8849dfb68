"""Solves cards by case-based reasoning: retrieve, reuse, revise, retain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from casewright.planner.chat_call import Chat
from casewright.stores import Binary, CaseStore, Hit, Retained
from casewright_math24.answer import Check, check
from casewright_math24.card_reader import CardReader, CardReading
from casewright_math24.cases import plans_of, puzzle_key, solved_case
from casewright_math24.decomposition import attempts, product_of_pairs
from casewright_math24.prompts import chat_attempts, prompt
from casewright_math24.puzzle import Problem, problem_of
from casewright_mcbr.picture import media_type

#: Number of retrieved cases; their plans are tried in order of nearness.
NEAREST_COUNT = 3
#: Maximum number of attempts; the second one follows a wrong answer.
MAX_ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class CardAnswer:
    """The answer to a card."""

    reading: CardReading  # the card's numbers
    problem: Problem  # the numbers in ascending order
    hits: Sequence[Hit]  # the nearest cases of other puzzles
    answered_by: str  # "reuse", or the chat model's name
    checks: Sequence[Check]  # the checks of all attempts; the last attempt is the answer
    #: The outcome of retaining the answer. ``None`` if ``retain`` was not set, if the answer is
    #: wrong, or if the answer is not a product of two pairs.
    retained: Retained | None = None

    @property
    def right(self) -> bool:
        """True if the last attempt is right."""
        return self.checks[-1].right


@dataclass(frozen=True, slots=True)
class CardAnswerer:
    """Solves cards with the cases of a store."""

    store: CaseStore  # a store whose schema is from puzzle_schema
    reader: CardReader
    #: A chat model, which is told the plans of the nearest cases (see ``cases.plans_of``). Without
    #: a model, ``attempts`` applies these plans to the card's numbers.
    chat: Chat | None = None
    name: str = "reuse"  # the chat model's name; "reuse" without a model

    def answer(self, image: bytes | Path, *, retain: bool = False) -> CardAnswer:
        """Return the answer to a card, given as an image file's path or bytes.

        ``retain`` stores a right answer as a case if it is a product of two pairs. Raise
        ``InputError`` if the image cannot be read, or does not show a card.
        """
        reading = self.reader.read(image)
        image_bytes = image.read_bytes() if isinstance(image, Path) else image
        problem = problem_of(reading.numbers)
        # As in the paper's protocol, cases of the same puzzle are not retrieved.
        not_this_puzzle = {"puzzle": {"not": puzzle_key(problem)}}
        card = {"card": Binary(media_type(image_bytes), image_bytes)}
        hits = self.store.search(card, NEAREST_COUNT, where=not_this_puzzle)
        plans = list(dict.fromkeys(plan for hit in hits for plan in plans_of(hit.case)))
        if self.chat is None:
            expressions = attempts(problem, plans)
        else:
            puzzle_prompt = prompt(problem, "top" if plans else "none", plans)
            expressions = chat_attempts(self.chat, puzzle_prompt, problem)
        checks: list[Check] = []
        for expression in islice(expressions, MAX_ATTEMPTS):
            verdict = check(expression, problem)
            if not expression and self.chat is None:
                plan_name = "next" if checks else "nearest case's"
                why = f"The {plan_name} plan gives no solution with these numbers."
                verdict = replace(verdict, why=why)
            checks.append(verdict)
            if verdict.right:
                break
        checks = checks or [Check("", False, "No case was found whose plan could be reused.")]
        answer = CardAnswer(reading, problem, hits, self.name, checks)
        # For a wrong answer, ``product_of_pairs`` returns ``None``.
        if retain and (solution := product_of_pairs(checks[-1].expression, problem)):
            case = solved_case(image_bytes, problem, [solution])
            return replace(answer, retained=self.store.retain(case))
        return answer
