"""Answers as HTML: the pictures of the card and of the cases, and the checked attempts."""

from __future__ import annotations

from html import escape

from casewright.stores import Binary
from casewright_math24.answer import Check
from casewright_math24.answerer import CardAnswer
from casewright_math24.cases import case_text
from casewright_mcbr.page import figure, item, page


def page_of(answer: CardAnswer, image: bytes) -> str:
    """Return an answer as HTML that needs no other file; ``image`` is the card's image file."""
    cases = "".join(
        figure(card.read(), f"{hit.score:.3f}: {case_text(hit.case)}")
        for hit in answer.hits
        if isinstance(card := hit.case.problem["card"], Binary)
    )
    attempts = "".join(map(_attempt, answer.checks))
    numbers = " ".join(map(str, answer.reading.numbers))
    return page(
        f"Math-24: {numbers}",
        f"<h1>Math-24</h1>{figure(image, f'Read: {numbers}')}<h2>Cases found</h2>{cases}"
        f"<h2>Answer, by {escape(answer.answered_by)}</h2><ol>{attempts}</ol>",
        image_width="9rem",
        figure_width="14rem",
    )


def _attempt(check: Check) -> str:
    verdict = escape(check.why or "Right: each number once, and 24.")
    equation = f"<code>{escape(check.expression)} = 24</code> " if check.expression else ""
    return item(equation + verdict, is_right=check.right)
