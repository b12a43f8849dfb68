"""Answers as lines of text, and as mappings of JSON values."""

from __future__ import annotations

from typing import Any

from casewright.stores import Hit
from casewright_backgammon.answerer import AdvisedPlay, BoardAnswer
from casewright_backgammon.cases import decision_in, roll_text
from casewright_backgammon.position import position_text


def lines_of(answer: BoardAnswer) -> list[str]:
    """Return an answer's lines: reading, roll, cases, advice, check, and if it became a case."""
    lines = [f"Read: {line}" for line in position_text(answer.position).splitlines()]
    lines.append(f"Roll: {roll_text(answer.dice)}.")
    if answer.played is not None:
        lines[-1] += f" Play asked about: {answer.played.text}."
    lines += map(_hit_line, answer.hits)
    for number, attempt in enumerate(answer.attempts, 1):
        lines.append(attempt_line(number, answer.answered_by, attempt))
    best = answer.decision.best.play
    lines += [f"Check, by {answer.judged_by}: {best} is best.", f"Analysis: {answer.analysis}"]
    if answer.retained is not None:
        lines.append(f"As a case: {answer.retained.outcome}.")
    elif answer.not_retained:
        lines.append(f"As a case: not kept. {answer.not_retained}")
    return lines


def _hit_line(hit: Hit) -> str:
    decision = decision_in(hit.case)
    situation = f"roll {roll_text(decision.dice)}, position {decision.position.id}"
    return f"Case, similarity {hit.score:.3f}, {situation}: {hit.case.solution}"


def attempt_line(number: int, name: str, attempt: AdvisedPlay) -> str:
    """Return the line of an attempt; ``name`` is ``reuse`` or the chat model's name."""
    advice = f"Advice {number}, by {name}:"
    if attempt.equity_loss is None:
        return f"{advice} no legal play. {attempt.flaw}"
    is_right, loss = attempt.is_right, attempt.equity_loss
    verdict = "is as good as the best" if is_right else f"gives up {loss:.3f}"
    flaw = f" {attempt.flaw}" if attempt.flaw else ""
    text = f"\n{attempt.text}" if attempt.text else ""
    return f"{advice} {attempt.play}, which by the check {verdict}.{flaw}{text}"


def json_of(answer: BoardAnswer) -> dict[str, Any]:
    """Return an answer as a mapping of JSON values."""
    return {
        "position_id": answer.position.id,
        "roll": roll_text(answer.dice),
        "move": None if answer.played is None else answer.played.text,
        "cases": [_hit_json(hit) for hit in answer.hits],
        "answered_by": answer.answered_by,
        "attempts": [
            {"play": a.play, "lost": a.equity_loss, "text": a.text, "why": a.flaw}
            for a in answer.attempts
        ],
        "judged_by": answer.judged_by,
        "analysis": answer.analysis,
        "candidates": answer.decision.to_dict()["candidates"],
        "right": answer.advice.is_right,
        "retained": None if answer.retained is None else answer.retained.outcome,
        "not_retained": answer.not_retained,
    }


def _hit_json(hit: Hit) -> dict[str, Any]:
    decision = decision_in(hit.case)
    return {
        "id": hit.case.id,
        "score": hit.score,
        "position_id": decision.position.id,
        "best": decision.best.play,
        "text": str(hit.case.solution),
    }
