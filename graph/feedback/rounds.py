"""Updates of a feedback loop's state, after each search and after each call of the judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.config import get_stream_writer

from casewright.errors import CasewrightError, one_line
from casewright.graph.call import elapsed_ms
from casewright.graph.feedback.state import FeedbackLimits, FeedbackState, estimated_tokens
from casewright.stores import Found
from casewright.stores.feedback import JudgeRequest, Verdicts
from casewright.stores.feedback.judge import note_line


def after_search(
    state: FeedbackState, results: Sequence[Found], search_name: str, started: float
) -> dict[str, Any]:
    """Return the state update after a search; without results, the loop stops."""
    round_number = len(state["rounds"]) + 1
    new_candidates = [
        {
            "id": result.hit.case.id,
            "round": round_number,
            "nearness": float(result.nearness),
            "relevant": None,
            "probability": None,
        }
        for result in results
    ]
    record = {
        "round": round_number,
        "search": search_name,
        "found": len(new_candidates),
        "judged": 0,
        "relevant": 0,
        "total": _relevant_count(state["candidates"]),
        "tokens": 0,
        "milliseconds": elapsed_ms(started),
        "note": "",
    }
    # After a search with results, the event is written once the judge has answered.
    if not new_candidates:
        _write_event(record)
    return {
        "candidates": [*state["candidates"], *new_candidates],
        "rounds": [*state["rounds"], record],
        "reason": "" if new_candidates else "exhausted",
    }


def after_failed_search(
    state: FeedbackState, limits: FeedbackLimits, error: Exception, started: float
) -> dict[str, Any]:
    """Return the state update, which stops the loop, if a search other than the first failed."""
    # A timeout before the deadline comes from the strategy itself.
    is_late = elapsed_ms(started) >= seconds_left(state, limits) * 1000
    if is_late and isinstance(error, TimeoutError):
        return {"reason": "deadline"}
    note = note_line(str(error) if isinstance(error, CasewrightError) else one_line(error))
    *earlier, record = state["rounds"]
    record = {**record, "note": f"The next search failed: {note}"}
    return {"reason": "search_failed", "rounds": [*earlier, record]}


def after_judge(
    state: FeedbackState,
    limits: FeedbackLimits,
    request: JudgeRequest,
    verdicts: Verdicts,
    started: float,
    *,
    is_complete: bool,
) -> dict[str, Any]:
    """Return the state update after a judge answered.

    The loop stops if ``is_complete`` is False: the request lacked some unjudged candidates.
    """
    if verdicts.failed:
        return after_failed_judge(state, request, verdicts, started)
    ids = {candidate.id for candidate in request.candidates}
    candidates = [
        {
            **candidate,
            "relevant": candidate["id"] in verdicts.relevant,
            "probability": verdicts.probabilities.get(candidate["id"]),
        }
        if candidate["id"] in ids
        else candidate
        for candidate in state["candidates"]
    ]
    texts = [candidate.text for candidate in (*request.relevant, *request.candidates)]
    estimate = estimated_tokens(request.question, *texts) if ids else 0
    changes = {
        "judged": len(ids),
        "relevant": len(verdicts.relevant),
        "total": _relevant_count(candidates),
        "tokens": _judge_tokens(verdicts) or estimate,
        "note": verdicts.note,
    }
    rounds = _updated_rounds(state, changes, started)
    new_state: FeedbackState = {**state, "candidates": candidates, "rounds": rounds}
    reason = _stop_reason(new_state, limits) if is_complete else "tokens"
    return {"candidates": candidates, "rounds": rounds, "reason": reason}


def after_failed_judge(
    state: FeedbackState, request: JudgeRequest, failure: Exception | Verdicts, started: float
) -> dict[str, Any]:
    """Return the state update, which stops the loop, after a judge failed or was too slow."""
    # A timeout before the deadline comes from the judge itself.
    is_late = elapsed_ms(started) >= request.seconds * 1000
    changes: dict[str, Any] = {}
    if isinstance(failure, Verdicts):
        cause, changes["tokens"] = failure.note or "it gave no reason", _judge_tokens(failure)
    else:
        cause, is_late = note_line(one_line(failure)), is_late and isinstance(failure, TimeoutError)
    changes["note"] = "The judge took too long." if is_late else f"The judge failed: {cause}"
    rounds = _updated_rounds(state, changes, started)
    return {"rounds": rounds, "reason": "deadline" if is_late else "judge_failed"}


def seconds_left(state: FeedbackState, limits: FeedbackLimits) -> float:
    """Return the remaining seconds of the loop; the time of pauses does not count."""
    spent_ms: float = sum(record["milliseconds"] for record in state["rounds"])
    return max(limits.seconds - spent_ms / 1000, 0.0)


def _stop_reason(state: FeedbackState, limits: FeedbackLimits) -> str:
    """Return the reason to stop after a judged round; empty if the loop continues."""
    rounds = state["rounds"]
    if not rounds[-1]["relevant"]:
        return "settled" if rounds[-1]["total"] else "nothing_relevant"
    if len(rounds) >= limits.rounds:
        return "rounds"
    if len(state["candidates"]) >= limits.candidates:
        return "candidates"
    if sum(record["tokens"] for record in rounds) >= limits.tokens:
        return "tokens"
    return "deadline" if seconds_left(state, limits) <= 0 else ""


def _updated_rounds(
    state: FeedbackState, changes: Mapping[str, Any], started: float
) -> list[dict[str, Any]]:
    """Return the rounds with a changed last record, and write this record to the stream."""
    *earlier, last_record = state["rounds"]
    record = {**last_record, **changes}
    record["milliseconds"] = round(record["milliseconds"] + elapsed_ms(started), 3)
    _write_event(record)
    return [*earlier, record]


def _relevant_count(candidates: Sequence[Mapping[str, Any]]) -> int:
    return sum(bool(candidate["relevant"]) for candidate in candidates)


def _judge_tokens(verdicts: Verdicts) -> int:
    return sum(verdicts.tokens.get(name, 0) for name in ("input", "output"))


def _write_event(record: Mapping[str, Any]) -> None:
    get_stream_writer()({"event": "feedback_round", **record})
