"""Routes of the service: questions, threads, runs, retained answers, corrections and health."""

from __future__ import annotations

import asyncio
import logging
import pathlib
from collections.abc import Mapping
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response, Security
from fastapi.security import HTTPBearer
from pydantic import BaseModel

from casewright import __version__
from casewright.domains.store_opening import is_unopened
from casewright.errors import PlanError, cleaned
from casewright.finetune.queries.correction import Outcome, correction_record, keep_correction
from casewright.graph.json_text import json_text
from casewright.graph.run_file import parse_run
from casewright.serve.service import models
from casewright.serve.service.events import MEDIA_TYPE, EventStream, event_lines
from casewright.serve.service.models import AskBody, ResumeBody, ThreadId
from casewright.serve.service.problems import RefusedError, answer_without_paths, responses
from casewright.serve.service.repeats import Attempt
from casewright.serve.service.runs import Runs, Waiting, no_thread_error, plan_steps, steps_if_plan
from casewright.serve.service.tokens import tenant_of
from casewright.stores import Case

#: Maximum body size in bytes for these paths only: a saved run can be larger than a question.
PATH_LIMITS = {"/runs/read": 8 * 1024 * 1024}
#: Maximum size of the file of corrections in bytes: no tenant may fill the disk.
MAX_CORRECTION_BYTES = 64 * 1024 * 1024
#: Time in which the stores and the threads' database must answer.
READY_SECONDS = 5.0
log = logging.getLogger("casewright.service")


# The next two functions are coroutines, since FastAPI would call plain functions in a thread.
async def _runs(request: Request) -> Runs:
    runs: Runs = request.app.state.runs
    return runs


async def _tenant(request: Request) -> str:
    return tenant_of(request.scope)


def json_response(value: Mapping[str, Any], status: int = 200) -> Response:
    """Return a JSON response with a value of JSON types, which is not validated."""
    body = json_text(value, separators=(",", ":"))
    return Response(body, status, media_type="application/json")


# This is for OpenAPI only: ``tokens.Authentication`` checks the token before any route.
BEARER = Security(HTTPBearer(auto_error=False, description="A token of a tenant."))
TheRuns = Annotated[Runs, Depends(_runs)]
TheTenant = Annotated[str, Depends(_tenant)]
TheKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        pattern=r'^("[ !#-\[\]-~]{1,128}"|[A-Za-z0-9._~-]{1,128})$',
        description="A key of this request only, such as a UUID in quotes. For a day, a repeated "
        "request with the same key returns the first response, or continues an interrupted run.",
    ),
]
ThreadPath = Annotated[ThreadId, Path(description="The thread's name, as its client gave it.")]
CasePath = Annotated[UUID, Path(description="The case's id.")]
RunPath = Annotated[UUID, Path(description="The answer's run_id.")]


def openapi(body: type[BaseModel], *errors: int, waits: bool = False) -> dict[str, Any]:
    """Return the arguments with which a route describes its responses in OpenAPI.

    Args:
        body: The response's body.
        errors: Statuses of errors, in addition to those of the middleware.
        waits: True to add the response 202, for a run that waits for a reply.
    """
    waiting_response = {"description": "The run waits for a reply.", "model": models.ThreadBody}
    accepted: dict[int | str, Any] = {202: waiting_response} if waits else {}
    return {"response_model": body, "responses": {**accepted, **responses(*errors)}}


asking = APIRouter(tags=["ask"], dependencies=[BEARER])
threads = APIRouter(prefix="/threads", tags=["threads"], dependencies=[BEARER])
information = APIRouter(tags=["service"], dependencies=[BEARER])
saved_runs = APIRouter(tags=["runs"], dependencies=[BEARER])
retained = APIRouter(tags=["cases"], dependencies=[BEARER])
corrections = APIRouter(tags=["corrections"], dependencies=[BEARER])
health = APIRouter(tags=["health"])
ROUTERS = (asking, threads, information, saved_runs, retained, corrections, health)
_EVENTS_TEXT = """\
Server-sent events; the data of each is JSON.

| event | data |
|---|---|
| `plan` | `plan`, `planner`, `steps`: the `id`, `tool`, `call` and `needs` of each; sent again \
when mending adds steps |
| `step` | `id`, `tool`, `status`; at its end also `milliseconds`, `results`, `error`, \
`evidence`, and `sentences`: quotations of this evidence, to show until the answer comes |
| `report` | `id`, `report`: the progress that a step's tool reports |
| `token` | `text`: the next piece of the answer |
| `waiting` | `thread_id`, `questions`: the run waits for a reply |
| `done` | the whole answer, as `/ask` returns it |
| `error` | a problem document |

The last event is `done`, `waiting` or `error`. Only the text of `done` is final: its citations \
are checked. This text replaces the texts of `token`.
"""
_RUN_FILE_BODY = {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}
_EVENT_SCHEMA = {
    "type": "object",
    "properties": {
        "event": {"enum": ["plan", "step", "report", "token", "waiting", "done", "error"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
    "required": ["event", "data"],
}


@asking.post("/ask", **openapi(models.AnswerBody, 409, waits=True), summary="Ask")
async def ask(body: AskBody, runs: TheRuns, tenant: TheTenant, key: TheKey = None) -> Response:
    """Plan, run the plan, and return an answer that cites its evidence."""
    attempt = runs.attempt(key, tenant, body.thread_id, "ask", body.model_dump())
    return await respond(runs, body, tenant, attempt)


async def respond(runs: Runs, body: AskBody, tenant: str, attempt: Attempt | None) -> Response:
    """Return the response to a question: its answer, or 202 if the run waits for a reply."""

    async def answer() -> Response:
        result = await runs.ask(body, tenant, attempt)
        if isinstance(result, Waiting):
            waiting = {"thread_id": body.thread_id, "status": "waiting", "question": body.question}
            return json_response({**waiting, "questions": result.questions}, 202)
        return json_response(result)

    return await runs.repeats.once(attempt, answer)


@asking.post("/plan", **openapi(models.PlannedBody), summary="Plan without running")
async def plan(body: models.PlanBody, runs: TheRuns, tenant: TheTenant) -> Response:
    """Plan a question, and return the plan with its price: calls, time, cost and tokens."""
    return json_response(await runs.plan(body, tenant))


@asking.post(
    "/ask/stream",
    status_code=200,
    response_class=EventStream,
    responses={
        200: {"description": _EVENTS_TEXT, "content": {MEDIA_TYPE: {"schema": _EVENT_SCHEMA}}},
        **responses(),
    },
    summary="Ask, and stream the run",
)
async def stream(
    body: AskBody, request: Request, runs: TheRuns, tenant: TheTenant, key: TheKey = None
) -> Response:
    """Ask, and receive the plan, each step, and the answer while it is written.

    A repeated request receives the last event only.
    """
    attempt = runs.attempt(key, tenant, body.thread_id, "stream", body.model_dump())
    events = runs.repeats.stream_once(attempt, runs.stream(body, tenant, attempt))
    return EventStream(event_lines(events, request.state.deadline))


@threads.get("/{thread_id}", **openapi(models.ThreadBody, 404), summary="State of a thread")
async def read_thread(thread_id: ThreadPath, runs: TheRuns, tenant: TheTenant) -> Response:
    """Return the state of a thread's last run."""
    return json_response(await state_of(runs, thread_id, runs.thread_key(thread_id, tenant)))


@threads.post(
    "/{thread_id}/resume",
    **openapi(models.ResumedBody, 404, 409, waits=True),
    summary="Resume a run",
)
async def resume(
    thread_id: ThreadPath, body: ResumeBody, runs: TheRuns, tenant: TheTenant, key: TheKey = None
) -> Response:
    """Continue a run after a crash or a disconnection, or reply to tools or to an approval.

    No finished step is repeated. A tool's question without a reply is asked again. If the reply to
    an approval is a plan that is not valid, approval is asked for again with the reason.
    """
    content = body.model_dump(exclude_unset=True)
    attempt = runs.attempt(key, tenant, thread_id, "resume", content)

    async def continue_run() -> Response:
        result = await runs.resume(thread_id, body, tenant, attempt)
        if isinstance(result, Waiting):
            state = await state_of(runs, thread_id, runs.thread_key(thread_id, tenant))
            # Another request may have continued the run meanwhile, but the response has the
            # questions at which this request's run stopped.
            waiting = {"status": "waiting", "questions": result.questions, "answer": None}
            return json_response({**state, **waiting}, 202)
        # The response has the steps, since a reply may have edited the plan.
        return json_response({**result, "plan_steps": steps_if_plan(result["plan"])})

    return await runs.repeats.once(attempt, continue_run)


@threads.delete("/{thread_id}", status_code=204, responses=responses(404, 409), summary="Delete")
async def forget(thread_id: ThreadPath, runs: TheRuns, tenant: TheTenant) -> None:
    """Delete a thread, its questions and its answers."""
    await runs.forget(thread_id, tenant)


async def state_of(runs: Runs, thread_id: str, thread_key: str) -> dict[str, Any]:
    """Return a thread's state; raise ``RefusedError`` if there is no such thread."""
    thread = await runs.state(thread_key)
    if thread is None:
        raise no_thread_error()
    if thread.is_answered:
        status = "answered"
    elif await runs.locks.is_locked(thread_key):
        status = "running"
    else:
        status = "waiting" if thread.questions else "interrupted"
    fields = ("tool", "status", "milliseconds")
    return {
        "thread_id": thread_id,
        "status": status,
        "question": thread.values["question"],
        "plan": thread.plan,
        "plan_steps": steps_if_plan(thread.plan),
        "steps": [
            {"id": outcome["step"], **{name: outcome[name] for name in fields}}
            for outcome in sorted(thread.outcomes, key=_step_number)
        ],
        "questions": thread.questions,
        "answer": answer_without_paths(thread.values["answer"]) if thread.is_answered else None,
    }


def _step_number(outcome: Mapping[str, Any]) -> int:
    return int(outcome["step"].removeprefix("s"))


@information.get("/about", **openapi(models.AboutBody), summary="The service")
async def about(runs: TheRuns) -> Response:
    """Return the domain with its tools, planner and generator."""
    parts, options = runs.parts, runs.options
    # A service with tokens hides the values, which may name another tenant's users.
    scopes = {name: [] if options.tokens else list(values) for name, values in parts.scopes.items()}
    return json_response(
        {
            "version": __version__,
            "domain": parts.domain,
            "description": parts.description,
            "questions": list(parts.questions),
            "planner": parts.planner.name,
            "generator": parts.generator.name,
            "tools": [tool.name for tool in parts.toolbox],
            "scopes": scopes,
            "retain": options.retain,
            "corrections": options.corrections_file is not None,
            "pinning": options.plans_folder is not None and options.pin_plans,
        }
    )


@saved_runs.post(
    "/runs/read",
    **openapi(models.RunBody),
    summary="Read a saved run",
    openapi_extra={"requestBody": _RUN_FILE_BODY},
)
async def read(request: Request) -> Response:
    """Check a file of ``casewright ask --save``, and return its run with the plan's steps."""
    return await asyncio.to_thread(_read_run, await request.body())


def _read_run(body: bytes) -> Response:
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise RefusedError(422, "The file is not a saved run: it is not UTF-8.") from None
    saved = parse_run(text, "The file")
    try:
        steps = plan_steps(saved.answer.plan)
        answer = saved.answer.to_json()
        return json_response({"question": saved.question, "answer": answer, "plan_steps": steps})
    except PlanError as error:
        # The page cannot draw an invalid plan; `casewright show` prints the plan's text.
        raise RefusedError(422, f"The file is a damaged run: {cleaned(str(error), 200)}") from None
    except RecursionError:
        raise RefusedError(422, "The file is a damaged run: it is nested too deeply.") from None


@retained.get("/cases", **openapi(models.CasesBody), summary="Retained answers")
async def cases(
    runs: TheRuns,
    tenant: TheTenant,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
) -> Response:
    """Return the tenant's retained answers, the newest first."""
    answers = await runs.list_retained(tenant)
    page = [_case_body(case) for case in answers[offset : offset + limit]]
    return json_response({"total": len(answers), "cases": page})


@retained.get("/cases/{case_id}", **openapi(models.CaseBody, 404), summary="Retained answer")
async def case(case_id: CasePath, runs: TheRuns, tenant: TheTenant) -> Response:
    """Return one retained answer of the tenant."""
    answer = None
    if runs.answer_store is not None:
        answer = await asyncio.to_thread(runs.answer_store.get, tenant, str(case_id))
    if answer is None:
        raise RefusedError(404, "There is no such case.")
    return json_response(_case_body(answer))


@retained.delete(
    "/cases/{case_id}", status_code=204, responses=responses(404), summary="Delete retained answer"
)
async def delete(case_id: CasePath, runs: TheRuns, tenant: TheTenant) -> None:
    """Delete a retained answer of the tenant."""
    store = runs.answer_store
    if store is None or not await asyncio.to_thread(store.delete, tenant, str(case_id)):
        raise RefusedError(404, "There is no such case.")


@retained.post(
    "/runs/{run_id}/approve", **openapi(models.RetainedBody, 404, 409), summary="Approve an answer"
)
async def approve(run_id: RunPath, runs: TheRuns, tenant: TheTenant) -> Response:
    """Retain the answer of one of the tenant's latest runs as a case."""
    return json_response(await runs.approve(str(run_id), tenant))


def _case_body(case: Case) -> dict[str, Any]:
    """Return the fields of ``CaseBody`` for a case that holds a retained answer."""
    return {
        "id": case.id,
        "question": case.problem["question"],
        **{name: case.solution[name] for name in ("answer", "plan", "citations", "sources")},
        "kept_by": case.result["kept_by"],
        "created": case.created,
    }


@corrections.post("/corrections", **openapi(models.CorrectedBody, 409), summary="Correct a plan")
async def correct(body: models.CorrectionBody, runs: TheRuns, tenant: TheTenant) -> Response:
    """Store a question with its right plan as an annotated message.

    The plan is checked against the tools. The operator decides whether planners use the message.
    """
    file = runs.options.corrections_file
    if file is None:
        raise RefusedError(409, "Corrections are not kept: corrections_file is not set.")
    history = [turn.model_dump() for turn in body.history]
    # The record names the tenant, since the operator may trust only some tenants.
    record = correction_record(
        body.question, body.plan, runs.parts.toolbox, body.context, history, tenant
    )
    outcome = await asyncio.to_thread(_store_correction, file, record)
    return json_response({"id": record["id"], "outcome": outcome})


def _store_correction(file: pathlib.Path, record: dict[str, Any]) -> Outcome:
    return keep_correction(file, record, MAX_CORRECTION_BYTES)


@health.head("/healthz", include_in_schema=False)
@health.get("/healthz", **openapi(models.HealthBody), summary="Alive")
async def alive() -> Response:
    """Return the status ``alive`` while the process answers."""
    return json_response({"status": "alive"})


@health.head("/readyz", include_in_schema=False)
@health.get("/readyz", **openapi(models.HealthBody), summary="Ready")
async def ready(request: Request) -> Response:
    """Return the status ``ready`` if the stores and the threads' database answer, or else 503."""
    runs: Runs = request.app.state.runs
    try:
        async with asyncio.timeout(READY_SECONDS):
            await _wait_for_stores(request, runs)
            # Any read shows that the threads' database answers.
            await runs.saver.aget_tuple({"configurable": {"thread_id": "", "checkpoint_ns": ""}})
    except Exception as error:
        log.warning("The service is not ready: %s", error)
        raise RefusedError(503, "A store or the threads' database does not answer.") from error
    return json_response({"status": "ready"})


async def _wait_for_stores(request: Request, runs: Runs) -> None:
    """Wait until the stores answer; concurrent requests share one check."""
    store_check: asyncio.Future[None] | None = getattr(request.app.state, "store_check", None)
    if store_check is None or store_check.done():
        store_check = asyncio.ensure_future(asyncio.to_thread(_check_stores, runs))
        # Without this callback, asyncio would log an exception that no request waits for.
        store_check.add_done_callback(lambda check: check.cancelled() or check.exception())
        request.app.state.store_check = store_check
    await asyncio.shield(store_check)


def _check_stores(runs: Runs) -> None:
    for store in runs.parts.stores.values():
        if not is_unopened(store):  # The check must not open a store.
            store.count()
    if runs.answer_store is not None:
        runs.answer_store.check()
