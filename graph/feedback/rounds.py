"""What a round leaves in the loop's state: candidates, a trace, and whether to stop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.config import get_stream_writer

from casewright.errors import CasewrightError, told
from casewright.graph.call import since
from casewright.graph.feedback.limits import FeedbackLimits, estimated_tokens
from casewright.graph.feedback.state import FeedbackState
from casewright.stores import Found
from casewright.stores.feedback import JudgeRequest, Verdicts
from casewright.stores.feedback.judge import plain


def found(state: FeedbackState, cases: Sequence[Found], by: str, started: float) -> dict[str, Any]:
    """Return the state's update after a search; where it found nothing, the loop stops."""
    rounds = state["rounds"]
    number = len(rounds) + 1
    new = [
        {
            "id": one.hit.case.id,
            "round": number,
            "nearness": float(one.nearness),
            "relevant": None,
            "probability": None,
        }
        for one in cases
    ]
    trace = {
        "round": number,
        "search": by,
        "found": len(new),
        "judged": 0,
        "relevant": 0,
        "total": sum(bool(one["relevant"]) for one in state["candidates"]),
        "tokens": 0,
        "milliseconds": since(started),
        "note": "",
    }
    if not new:
        _tell(trace)
    return {
        "candidates": [*state["candidates"], *new],
        "rounds": [*rounds, trace],
        "reason": "" if new else "exhausted",
    }


def unsearched(
    state: FeedbackState, limits: FeedbackLimits, error: Exception, started: float
) -> dict[str, Any]:
    """Return the state's update where a later search failed: the loop stops."""
    # A strategy may have had a shorter deadline of its own.
    if isinstance(error, TimeoutError) and since(started) >= left(state, limits) * 1000:
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
    whole: bool,
) -> dict[str, Any]:
    """Return the state's update after a judge answered.

    Args:
        state: Before it.
        limits: The loop's.
        request: What the judge was asked.
        verdicts: What it answered, checked.
        started: When its node was entered, by ``time.perf_counter``.
        whole: It was asked about everything that is not judged yet; the loop stops if not.
    """
    if verdicts.failed:
        return unjudged(state, request, verdicts, started)
    asked = {one.id for one in request.candidates}
    candidates = [
        {
            **one,
            "relevant": one["id"] in verdicts.relevant,
            "probability": verdicts.probabilities.get(one["id"]),
        }
        if one["id"] in asked
        else one
        for one in state["candidates"]
    ]
    texts = [one.text for one in (*request.relevant, *request.candidates)]
    counted = _counted(verdicts)
    estimated = estimated_tokens(request.question, *texts) if asked else 0
    trace = {
        **state["rounds"][-1],
        "judged": len(asked),
        "relevant": len(verdicts.relevant),
        "total": sum(bool(one["relevant"]) for one in candidates),
        "tokens": counted or estimated,
        "note": verdicts.note,
    }
    trace["milliseconds"] = round(trace["milliseconds"] + since(started), 3)
    _tell(trace)
    update: dict[str, Any] = {
        "candidates": candidates,
        "rounds": [*state["rounds"][:-1], trace],
    }
    now: FeedbackState = {**state, **update}  # type: ignore[typeddict-item]
    return {**update, "reason": reason(now, limits) if whole else "tokens"}


def unjudged(
    state: FeedbackState,
    request: JudgeRequest,
    error: Exception | Verdicts,
    started: float,
) -> dict[str, Any]:
    """Return the state's update where a judge failed, or was too slow: the loop stops."""
    # A judge may have had a shorter deadline of its own.
    late = since(started) >= request.seconds * 1000
    trace = {**state["rounds"][-1]}
    if isinstance(error, Verdicts):
        why, trace["tokens"] = error.note or "it says no more", _counted(error)
    else:
        why, late = plain(told(error)), late and isinstance(error, TimeoutError)
    trace["note"] = "The judge took too long." if late else f"The judge failed: {why}"
    trace["milliseconds"] = round(trace["milliseconds"] + since(started), 3)
    _tell(trace)
    return {
        "rounds": [*state["rounds"][:-1], trace],
        "reason": "deadline" if late else "judge_failed",
    }


def reason(state: FeedbackState, limits: FeedbackLimits) -> str:
    """Return why the loop stops after a round was judged; empty where it goes on."""
    rounds = state["rounds"]
    if not rounds[-1]["relevant"]:
        return "settled" if rounds[-1]["total"] else "nothing_relevant"
    if len(rounds) >= limits.rounds:
        return "rounds"
    if len(state["candidates"]) >= limits.candidates:
        return "candidates"
    if sum(one["tokens"] for one in rounds) >= limits.tokens:
        return "tokens"
    return "deadline" if left(state, limits) <= 0 else ""


def left(state: FeedbackState, limits: FeedbackLimits) -> float:
    """Return the seconds that are left; what a pause took does not count."""
    spent: float = sum(one["milliseconds"] for one in state["rounds"])
    return max(limits.seconds - spent / 1000, 0.0)


def _counted(verdicts: Verdicts) -> int:
    return sum(verdicts.tokens.get(name, 0) for name in ("input", "output"))


def ended(reason: str, judge: str) -> None:
    """Say on the stream why a loop stopped."""
    get_stream_writer()({"event": "feedback_ended", "reason": reason, "judge": judge})


def _tell(trace: Mapping[str, Any]) -> None:
    get_stream_writer()({"event": "feedback_round", **trace})
