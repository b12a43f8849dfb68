"""Threads: runs that are kept by a name of their client's, each tenant's own."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from casewright.serve.service.ask_routes import WAITING
from casewright.serve.service.models import ResumeBody, ResumedBody, ThreadBody
from casewright.serve.service.plan_steps import steps_of
from casewright.serve.service.problems import answer_without_paths, responses
from casewright.serve.service.replies import BEARER, TheCaller, TheRuns, ThreadPath, reply
from casewright.serve.service.runs import Runs, Waiting, unknown_thread

router = APIRouter(prefix="/threads", tags=["threads"], dependencies=[BEARER])
#: Under this LangGraph keeps what a task returned, until its node is over.
_RETURNED = "__return__"


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
    thread_id: ThreadPath, body: ResumeBody, runs: TheRuns, caller: TheCaller
) -> Response:
    """Go on where a run was left: by a crash, by a client that went, or to reply to a tool.

    No finished step is repeated. Where several tools ask, a reply is to the first of the questions,
    and the others are asked again.
    """
    ended = await runs.resume(thread_id, body, caller)
    if isinstance(ended, Waiting):
        state = await state_of(runs, thread_id, runs.key(thread_id, caller))
        # Another request may have gone on since; this one's answer is that it waits.
        told = {"status": "waiting", "questions": ended.questions, "answer": None}
        return reply({**state, **told}, 202)
    return reply({**ended, "plan_steps": steps_of(ended["plan"])})


@router.delete("/{thread_id}", status_code=204, responses=responses(404, 409), summary="Forget")
async def forget(thread_id: ThreadPath, runs: TheRuns, caller: TheCaller) -> None:
    """Delete a thread, its questions and its answers."""
    await runs.forget(thread_id, caller)


async def state_of(runs: Runs, thread_id: str, key: str) -> dict[str, Any]:
    """Return a thread's state.

    Raises:
        RefusedError: There is no such thread.
    """
    config: Any = {"configurable": {"thread_id": key}}
    found = await runs.graph.aget_state(config)
    kept = await runs.saver.aget_tuple(config)
    if "question" not in found.values or kept is None:
        raise unknown_thread()
    values = found.values
    if not found.next:
        status = "answered"
    elif runs.running(key):
        status = "running"
    else:
        status = "waiting" if found.interrupts else "interrupted"
    # A node's input is there before its own part is: what stands beside it is of an earlier run.
    planned = "execute" in found.next or not found.next or "generate" in found.next
    outcomes = values.get("outcomes", []) if "execute" not in found.next and planned else []
    returned = [write for _, channel, write in kept.pending_writes or () if channel == _RETURNED]
    plan = values.get("plan") if planned else None
    return {
        "thread_id": thread_id,
        "status": status,
        "question": values["question"],
        "plan": plan,
        "plan_steps": steps_of(plan),
        "steps": [
            {
                "id": outcome["step"],
                "tool": outcome["tool"],
                "status": outcome["status"],
                "milliseconds": outcome["milliseconds"],
            }
            for outcome in sorted([*outcomes, *returned], key=lambda one: int(one["step"][1:]))
        ],
        "questions": [one.value for one in found.interrupts],
        "answer": answer_without_paths(values["answer"]) if not found.next else None,
    }
