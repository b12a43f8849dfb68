"""An answer in words, line by line, and as JSON."""

from __future__ import annotations

from typing import Any

from casewright_backgammon.answerer import Attempt, BoardAnswer
from casewright_backgammon.cases import decision_in, roll_text
from casewright_backgammon.position import in_words
from casewright.stores import Hit


def lines_of(found: BoardAnswer) -> list[str]:
    """Return an answer as lines: what was read, the cases, the advice, the check."""
    lines = [f"Read: {line}" for line in in_words(found.position).splitlines()]
    asked = f"Roll: {roll_text(found.dice)}."
    if found.made is not None:
        asked += f" Play asked about: {found.made.text}."
    lines.append(asked)
    lines += [hit_line(hit) for hit in found.hits]
    lines += [
        attempt_line(number, found.answered_by, one) for number, one in enumerate(found.attempts, 1)
    ]
    best = found.decision.best.play
    lines += [f"Check, by {found.judged_by}: {best} is best.", f"Analysis: {found.analysis}"]
    if found.retained is not None:
        lines.append(f"As a case: {found.retained.outcome}.")
    elif found.not_retained:
        lines.append(f"As a case: not kept. {found.not_retained}")
    return lines


def hit_line(hit: Hit) -> str:
    """Return a case in one line."""
    decision = decision_in(hit.case)
    where = f"roll {roll_text(decision.dice)}, position {decision.position.id}"
    return f"Case, {hit.score:.3f} alike, {where}: {hit.case.solution}"


def attempt_line(number: int, name: str, one: Attempt) -> str:
    """Return an attempt in one line."""
    if one.lost is None:
        return f"Advice {number}, by {name}: no legal play. {one.why}"
    verdict = "is as good as the best" if one.good else f"gives up {one.lost:.3f}"
    more = f" {one.why}" if one.why else ""
    said = f"\n{one.text}" if one.text else ""
    return f"Advice {number}, by {name}: {one.play}, which by the check {verdict}.{more}{said}"


def told_of(found: BoardAnswer) -> dict[str, Any]:
    """Return an answer JSON-plain."""
    return {
        "position_id": found.position.id,
        "roll": roll_text(found.dice),
        "move": None if found.made is None else found.made.text,
        "cases": [
            {
                "id": hit.case.id,
                "score": hit.score,
                "position_id": decision_in(hit.case).position.id,
                "best": decision_in(hit.case).best.play,
                "text": str(hit.case.solution),
            }
            for hit in found.hits
        ],
        "answered_by": found.answered_by,
        "attempts": [
            {"play": one.play, "lost": one.lost, "text": one.text, "why": one.why}
            for one in found.attempts
        ],
        "judged_by": found.judged_by,
        "analysis": found.analysis,
        "candidates": found.decision.to_dict()["candidates"],
        "right": found.advice.good,
        "retained": None if found.retained is None else found.retained.outcome,
        "not_retained": found.not_retained,
    }
