"""An answer as a page of its own: the board, the cases with their boards, the advice, the check."""

from __future__ import annotations

from html import escape

from casewright_backgammon.answerer import BoardAnswer
from casewright_backgammon.board_image import board_png
from casewright_backgammon.cases import decision_in, roll_text
from casewright_backgammon.lines import attempt_line
from casewright_backgammon.position import Position, in_words
from casewright_mcbr.figure import figure

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;"
    "color-scheme:light dark}img{width:100%;border:1px solid #8888;border-radius:.5rem}"
    "figure{display:inline-block;margin:0 1rem 1rem 0;max-width:27rem;vertical-align:top}"
    "figcaption{font-size:.85rem}.right{color:#197b30}.wrong{color:#c0392b}"
    "li,p{white-space:pre-line}"
)


def page_of(found: BoardAnswer, image: bytes) -> str:
    """Return the answer as one HTML document that needs no other file."""
    asked = f"Roll {roll_text(found.dice)}"
    if found.made is not None:
        asked += f", play {found.made.text}"
    boards = figure(image, "The picture") + _drawn(found.position, in_words(found.position))
    cases = "".join(
        _drawn(
            decision_in(hit.case).position,
            f"{hit.score:.3f} alike, roll {roll_text(decision_in(hit.case).dice)}. "
            f"{hit.case.solution}",
        )
        for hit in found.hits
    )
    tries = "".join(
        f'<li class="{"right" if one.good else "wrong"}">'
        f"{escape(attempt_line(number, found.answered_by, one))}</li>"
        for number, one in enumerate(found.attempts, 1)
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>Backgammon: {escape(asked)}</title><style>{_STYLE}</style>"
        f"<h1>{escape(asked)}</h1><h2>What was read</h2>{boards}"
        f"<h2>Cases found</h2>{cases}"
        f"<h2>Advice, by {escape(found.answered_by)}</h2><ul>{tries}</ul>"
        f"<h2>Check, by {escape(found.judged_by)}</h2><p>{escape(found.analysis)}</p></html>\n"
    )


def _drawn(position: Position, caption: str) -> str:
    return figure(board_png(position), caption)
