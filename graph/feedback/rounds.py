"""State updates of a feedback loop after a round: candidates, trace, and reason to stop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.config import get_stream_writer

from casewright.errors import CasewrightError, told
from casewright.graph.call import since
from casewright.graph.feedback.state import FeedbackLimits, FeedbackState, estimated_tokens
from casewright.stores import Found
from casewright.stores.feedback import JudgeRequest, Verdicts
from casewright.stores.feedback.judge import plain


def searched(
    state: FeedbackState, results: Sequence[Found], search: str, started: float
) -> dict[str, Any]:
    """Return the state update after a search; without results, the loop stops."""
    number = len(state["rounds"]) + 1
    new = [
        {
            "id": item.hit.case.id,
            "round": number,
            "nearness": float(item.nearness),
            "relevant": None,
            "probability": None,
        }
        for item in results
    ]
    trace = {
        "round": number,
        "search": search,
        "found": len(new),
        "judged": 0,
        "relevant": 0,
        "total": _relevant(state["candidates"]),
        "tokens": 0,
        "milliseconds": since(started),
        "note": "",
    }
    if not new:
        _tell(trace)
    return {
        "candidates": [*state["candidates"], *new],
        "rounds": [*state["rounds"], trace],
        "reason": "" if new else "exhausted",
    }


def search_failed(
    state: FeedbackState, limits: FeedbackLimits, error: Exception, started: float
) -> dict[str, Any]:
    """Return the state update after a later search failed, which stops the loop."""
    # A strategy may have a shorter deadline.
    if isinstance(error, TimeoutError) and since(started) >= seconds_left(state, limits) * 1000:
        return {"reason": "deadline"}
    note = plain(str(error) if isinstance(error, CasewrightError) else told(error))
    last = {**state["rounds"][-1], "note": f"The next search failed: {note}"}
    return {"reason": "search_failed", "rounds": [*state["rounds"][:-1], last]}


def judged(
    state: FeedbackState,
    limits: FeedbackLimits,
    request: JudgeRequest,
    verdicts: Verdicts,
    started: float,
    *,
    complete: bool,
) -> dict[str, Any]:
    """Return the state update after a judge answered.

    The loop stops if the request was not ``complete``: if it lacked some unseen candidates.
    """
    if verdicts.failed:
        return judge_failed(state, request, verdicts, started)
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
    estimated = estimated_tokens(request.question, *texts) if ids else 0
    changes = {
        "judged": len(ids),
        "relevant": len(verdicts.relevant),
        "total": _relevant(candidates),
        "tokens": _counted(verdicts) or estimated,
        "note": verdicts.note,
    }
    rounds = _with_last(state, changes, started)
    new_state: FeedbackState = {**state, "candidates": candidates, "rounds": rounds}
    reason = _reason(new_state, limits) if complete else "tokens"
    return {"candidates": candidates, "rounds": rounds, "reason": reason}


def judge_failed(
    state: FeedbackState, request: JudgeRequest, error: Exception | Verdicts, started: float
) -> dict[str, Any]:
    """Return the state update after a judge failed or was too slow, which stops the loop."""
    # A judge may have a shorter deadline.
    late = since(started) >= request.seconds * 1000
    changes: dict[str, Any] = {}
    if isinstance(error, Verdicts):
        why, changes["tokens"] = error.note or "it gave no reason", _counted(error)
    else:
        why, late = plain(told(error)), late and isinstance(error, TimeoutError)
    changes["note"] = "The judge took too long." if late else f"The judge failed: {why}"
    rounds = _with_last(state, changes, started)
    return {"rounds": rounds, "reason": "deadline" if late else "judge_failed"}


def seconds_left(state: FeedbackState, limits: FeedbackLimits) -> float:
    """Return the remaining seconds; pauses do not count."""
    spent: float = sum(trace["milliseconds"] for trace in state["rounds"])
    return max(limits.seconds - spent / 1000, 0.0)


def _reason(state: FeedbackState, limits: FeedbackLimits) -> str:
    """Return the reason to stop after a round was judged; empty to go on."""
    rounds = state["rounds"]
    if not rounds[-1]["relevant"]:
        return "settled" if rounds[-1]["total"] else "nothing_relevant"
    if len(rounds) >= limits.rounds:
        return "rounds"
    if len(state["candidates"]) >= limits.candidates:
        return "candidates"
    if sum(trace["tokens"] for trace in rounds) >= limits.tokens:
        return "tokens"
    return "deadline" if seconds_left(state, limits) <= 0 else ""


def _with_last(
    state: FeedbackState, changes: Mapping[str, Any], started: float
) -> list[dict[str, Any]]:
    """Return the rounds with a changed last trace, and write that trace to the stream."""
    *earlier, last = state["rounds"]
    trace = {**last, **changes}
    trace["milliseconds"] = round(trace["milliseconds"] + since(started), 3)
    _tell(trace)
    return [*earlier, trace]


def _relevant(candidates: Sequence[Mapping[str, Any]]) -> int:
    return sum(bool(candidate["relevant"]) for candidate in candidates)


def _counted(verdicts: Verdicts) -> int:
    return sum(verdicts.tokens.get(name, 0) for name in ("input", "output"))


def _tell(trace: Mapping[str, Any]) -> None:
    get_stream_writer()({"event": "feedback_round", **trace})
