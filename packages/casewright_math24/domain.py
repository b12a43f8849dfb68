"""The Math-24 domain makes 24 of a card's four numbers by the plans of similar cards (MCBR-RAG)."""

from __future__ import annotations

import re
from importlib.resources import files

from casewright.domains.domain import OpenDomain
from casewright.domains.own_answer import IMAGE_OPTIONS, OwnAnswer, OwnRequest
from casewright.stores import CaseStore
from casewright_math24.answerer import CardAnswer, CardAnswerer
from casewright_math24.card_reader import CARD_WEIGHTS, shipped_reader
from casewright_math24.cases import card_image, case_text, puzzle_case, puzzle_schema
from casewright_math24.decomposition import decomposable_problems
from casewright_math24.latent import LATENT_WEIGHTS, shipped_network
from casewright_math24.page import page_of
from casewright_math24.puzzle import problem_of
from casewright_mcbr.domain import one_tool_domain

#: The modules that determine the cases; the store is rebuilt if one changes.
CASE_MODULES = ("cards.py", "cases.py", "decomposition.py", "domain.py")
QUERIES = (  # example questions; the tool answers each in one call
    "How do I make 24 of 2, 3, 7 and 8?",
    "Solve the Math-24 puzzle 1 8 10 12",
    "24 out of 3 4 6 9?",
    "I have the numbers 2, 4, 8 and 10. What makes 24?",
)


def _evidence(store: CaseStore, question: str) -> list[str]:
    """Return the lines of the answer to a question: the attempts, then the cases."""
    numbers = [int(text) for text in re.findall(r"\d+", question)]
    if len(numbers) > 4 and 24 in numbers:  # a question may also name the goal
        numbers.remove(24)
    answer = CardAnswerer(store, shipped_reader()).answer(card_image(problem_of(numbers)))
    # The first line is left out: it shows the numbers read from an image, which a question lacks.
    return sorted(lines_of(answer)[1:], key=lambda line: line.startswith("Case"))


def answer_card(opened: OpenDomain, request: OwnRequest) -> OwnAnswer:
    """Return the answer to a request's card; see ``CardAnswerer.answer``."""
    image = request.image
    answerer = CardAnswerer(opened.stores["math24"], shipped_reader(), request.chat, request.name)
    answer = answerer.answer(image, retain="retain" in request.options)
    record = {
        "numbers": list(answer.reading.numbers),
        "confidence": answer.reading.confidence,
        "cases": [
            {"id": hit.case.id, "score": hit.score, "text": case_text(hit.case)}
            for hit in answer.hits
        ],
        "answered_by": answer.answered_by,
        "attempts": [
            {"expression": check.expression, "right": check.right, "why": check.why}
            for check in answer.checks
        ],
        "right": answer.right,
        "retained": None if answer.retained is None else answer.retained.outcome,
    }
    page = page_of(answer, image.read_bytes())
    return OwnAnswer(lines_of(answer), record, page, answer.right).save_page(request)


def lines_of(answer: CardAnswer) -> list[str]:
    """Return an answer as lines: numbers, cases, attempts, and the outcome of ``retain``."""
    reading = answer.reading
    lines = [f"Read: {' '.join(map(str, reading.numbers))} ({reading.confidence:.3f} sure)"]
    lines += [f"Case, {hit.score:.3f} alike: {case_text(hit.case)}" for hit in answer.hits]
    for number, check in enumerate(answer.checks, 1):
        verdict = "right: each number once, and 24" if check.right else check.why
        equation = f"{check.expression} = 24. " if check.expression else ""
        lines.append(f"Attempt {number}, by {answer.answered_by}: {equation}{verdict}")
    if answer.retained is not None:
        lines.append(f"As a case: {answer.retained.outcome}.")
    return lines


DOMAIN = one_tool_domain(
    "math24",
    "A card shows four numbers, of which 24 is to be made.",
    QUERIES,
    tool="make_24",
    tool_description="Makes 24 of four numbers by the plans of similar puzzles, and checks it.",
    schema=lambda: puzzle_schema(shipped_reader(), shipped_network()),
    cases=lambda: [puzzle_case(problem) for problem in decomposable_problems()],
    sources=lambda: [
        *(files("casewright_math24") / name for name in CASE_MODULES),
        *(CARD_WEIGHTS, LATENT_WEIGHTS),
    ],
    evidence=_evidence,
    options=IMAGE_OPTIONS,
    answer=answer_card,
)
