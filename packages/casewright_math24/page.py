"""An answer as a page of its own: the card, the cases with their cards, the answer, the check."""

from __future__ import annotations

from html import escape

from casewright_mcbr.figure import figure
from casewright_math24.answer import Check
from casewright_math24.answerer import CardAnswer
from casewright_math24.cases import case_text
from casewright.stores import Binary

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:48rem;margin:2rem auto;padding:0 1rem;"
    "color-scheme:light dark}img{width:9rem;border:1px solid #8888;border-radius:.5rem}"
    "figure{display:inline-block;margin:0 1rem 1rem 0;max-width:14rem;vertical-align:top}"
    "figcaption{font-size:.85rem}.right{color:#197b30}.wrong{color:#c0392b}code{font-size:1.1em}"
)


def page_of(found: CardAnswer, image: bytes) -> str:
    """Return the answer as one HTML document that needs no other file."""
    cases = "".join(
        figure(card.read(), f"{hit.score:.3f}: {case_text(hit.case)}")
        for hit in found.hits
        if isinstance(card := hit.case.problem["card"], Binary)
    )
    tries = "".join(map(_attempt, found.checks))
    numbers = " ".join(map(str, found.reading.numbers))
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        f"<title>Math-24: {escape(numbers)}</title><style>{_STYLE}</style>"
        f"<h1>Math-24</h1>{figure(image, f'Read: {numbers}')}"
        f"<h2>Cases found</h2>{cases}"
        f"<h2>Answer, by {escape(found.answered_by)}</h2><ol>{tries}</ol></html>\n"
    )


def _attempt(one: Check) -> str:
    verdict = one.why or "Right: each number once, and 24."
    shown = f"<code>{escape(one.expression)} = 24</code> " if one.expression else ""
    return f'<li class="{"right" if one.right else "wrong"}">{shown}{escape(verdict)}</li>'
