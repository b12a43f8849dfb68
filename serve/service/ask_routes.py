"""Asking: one answer, or the events on the way to it."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from casewright.serve.service.events import MEDIA_TYPE, EventStream, lines
from casewright.serve.service.models import AnswerBody, AskBody, ThreadBody
from casewright.serve.service.problems import responses
from casewright.serve.service.replies import BEARER, TheCaller, TheKey, TheRuns, reply
from casewright.serve.service.runs import Waiting

router = APIRouter(tags=["ask"], dependencies=[BEARER])
WAITING: dict[int | str, dict[str, Any]] = {
    202: {"description": "A tool waits for a reply.", "model": ThreadBody}
}
_EVENTS = """\
Server-sent events; the data of each is JSON.

| event | data |
|---|---|
| `plan` | `plan`, `planner`, `steps`: each one's `id`, `tool`, `call` and what it `needs` |
| `step` | `id`, `tool`, `status`; at its end also `milliseconds`, `results`, `error` |
| `report` | `id`, `report`: what a step's tool tells on the way |
| `token` | `text`: the next piece of the answer |
| `waiting` | `thread_id`, `questions`: a tool waits for a reply |
| `done` | the whole answer, as `/ask` returns it |
| `error` | a problem document |

The last is `done`, `waiting` or `error`. The text of `done` is the one whose citations are checked.
"""
_EVENT = {
    "type": "object",
    "properties": {
        "event": {"enum": ["plan", "step", "report", "token", "waiting", "done", "error"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
    "required": ["event", "data"],
}


@router.post(
    "/ask", response_model=AnswerBody, responses={**WAITING, **responses(409)}, summary="Ask"
)
async def ask(body: AskBody, runs: TheRuns, caller: TheCaller, key: TheKey = None) -> Response:
    """Plan, look up, and return an answer that cites its evidence."""
    attempt = runs.attempt(key, caller, body.thread_id, "ask", body.model_dump())

    async def work() -> Response:
        return answered(await runs.ask(body, caller, attempt), body.thread_id, body.question)

    return await runs.repeats.once(attempt, work)


@router.post(
    "/ask/stream",
    status_code=200,
    response_class=EventStream,
    responses={
        200: {"description": _EVENTS, "content": {MEDIA_TYPE: {"schema": _EVENT}}},
        **responses(),
    },
    summary="Ask, and watch",
)
async def stream(
    body: AskBody, request: Request, runs: TheRuns, caller: TheCaller, key: TheKey = None
) -> Response:
    """Ask, and be told of the plan, of each step and of the answer as it is worded.

    Of a request that is repeated the last event alone is told.
    """
    attempt = runs.attempt(key, caller, body.thread_id, "stream", body.model_dump())
    events = runs.repeats.streamed(attempt, runs.stream(body, caller, attempt))
    return EventStream(lines(events, request.state.deadline))


def answered(ended: dict[str, object] | Waiting, thread_id: str | None, question: str) -> Response:
    """Return the response of a run that ended, or that waits."""
    if isinstance(ended, Waiting):
        waiting = {"thread_id": thread_id, "status": "waiting", "question": question}
        return reply({**waiting, "questions": ended.questions}, 202)
    return reply(ended)
