"""Answers as HTML pages: the board, the cases with their boards, the advice and the check."""

from __future__ import annotations

from html import escape

from casewright_backgammon.answerer import BoardAnswer
from casewright_backgammon.board_image import board_png
from casewright_backgammon.cases import decision_in, roll_text
from casewright_backgammon.lines import attempt_line
from casewright_backgammon.position import position_text
from casewright_mcbr.page import figure, item, page


def page_of(answer: BoardAnswer, image: bytes) -> str:
    """Return an answer as one HTML document; ``image`` is the content of the picture's file."""
    title = f"Roll {roll_text(answer.dice)}"
    if answer.played is not None:
        title += f", play {answer.played.text}"
    boards = figure(image, "The picture")
    boards += figure(board_png(answer.position), position_text(answer.position))
    cases = ""
    for hit in answer.hits:
        decision = decision_in(hit.case)
        similarity = f"Similarity {hit.score:.3f}, roll {roll_text(decision.dice)}."
        cases += figure(board_png(decision.position), f"{similarity} {hit.case.solution}")
    attempts = ""
    for number, attempt in enumerate(answer.attempts, 1):
        line = attempt_line(number, answer.answered_by, attempt)
        attempts += item(escape(line), is_right=attempt.is_right)
    return page(
        f"Backgammon: {title}",
        f"<h1>{escape(title)}</h1><h2>What was read</h2>{boards}<h2>Cases found</h2>{cases}"
        f"<h2>Advice, by {escape(answer.answered_by)}</h2><ul>{attempts}</ul>"
        f"<h2>Check, by {escape(answer.judged_by)}</h2><p>{escape(answer.analysis)}</p>",
        image_width="100%",
        figure_width="27rem",
    )
