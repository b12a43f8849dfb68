"""Threads: runs that are kept by a name of their client's, each tenant's own."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from casewright.serve.service.ask_routes import WAITING
from casewright.serve.service.models import ResumeBody, ResumedBody, ThreadBody
from casewright.serve.service.plan_steps import steps_of
from casewright.serve.service.problems import answer_without_paths, responses
from casewright.serve.service.replies import BEARER, TheCaller, TheKey, TheRuns, ThreadPath, reply
from casewright.serve.service.runs import Runs, Waiting, unknown_thread

router = APIRouter(prefix="/threads", tags=["threads"], dependencies=[BEARER])


@router.get(
    "/{thread_id}", response_model=ThreadBody, responses=responses(404), summary="Look at a thread"
)
async def look(thread_id: ThreadPath, runs: TheRuns, caller: TheCaller) -> Response:
    """Return what is known of a thread's last run."""
    return reply(await state_of(runs, thread_id, runs.key(thread_id, caller)))


@router.post(
    "/{thread_id}/resume",
    response_model=ResumedBody,
    responses={**WAITING, **responses(404, 409)},
    summary="Go on with a run",
)
async def resume(
    thread_id: ThreadPath,
    body: ResumeBody,
    runs: TheRuns,
    caller: TheCaller,
    key: TheKey = None,
) -> Response:
    """Go on where a run was left: by a crash, by a client that went, or to reply to a tool.

    No finished step is repeated. A reply names the question that it is to; where several tools ask,
    the others are asked again.
    """
    asked = body.model_dump(exclude_unset=True)
    attempt = runs.attempt(key, caller, thread_id, "resume", asked)

    async def work() -> Response:
        ended = await runs.resume(thread_id, body, caller, attempt)
        if isinstance(ended, Waiting):
            state = await state_of(runs, thread_id, runs.key(thread_id, caller))
            # Another request may have gone on since; this one's answer is that it waits.
            told = {"status": "waiting", "questions": ended.questions, "answer": None}
            return reply({**state, **told}, 202)
        return reply({**ended, "plan_steps": steps_of(ended["plan"])})

    return await runs.repeats.once(attempt, work)


@router.delete("/{thread_id}", status_code=204, responses=responses(404, 409), summary="Forget")
async def forget(thread_id: ThreadPath, runs: TheRuns, caller: TheCaller) -> None:
    """Delete a thread, its questions and its answers."""
    await runs.forget(thread_id, caller)


async def state_of(runs: Runs, thread_id: str, key: str) -> dict[str, Any]:
    """Return a thread's state.

    Raises:
        RefusedError: There is no such thread.
    """
    found = await runs.state(key)
    if found is None:
        raise unknown_thread()
    if found.answered:
        status = "answered"
    elif await runs.locks.held(key):
        status = "running"
    else:
        status = "waiting" if found.questions else "interrupted"
    return {
        "thread_id": thread_id,
        "status": status,
        "question": found.values["question"],
        "plan": found.plan,
        "plan_steps": steps_of(found.plan),
        "steps": [
            {
                "id": outcome["step"],
                "tool": outcome["tool"],
                "status": outcome["status"],
                "milliseconds": outcome["milliseconds"],
            }
            for outcome in sorted(found.outcomes, key=lambda one: int(one["step"][1:]))
        ],
        "questions": found.questions,
        "answer": answer_without_paths(found.values["answer"]) if found.answered else None,
    }
