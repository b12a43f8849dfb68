"""Looking at what was run: a saved run's file, and what this service answers about."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request, Response

from casewright import __version__
from casewright.errors import PlanError, cleaned
from casewright.graph.run_file import parse_run
from casewright.serve.service.models import AboutBody, RunBody
from casewright.serve.service.plan_steps import plan_steps
from casewright.serve.service.problems import RefusedError, responses
from casewright.serve.service.replies import BEARER, TheRuns, reply

router = APIRouter(tags=["runs"], dependencies=[BEARER])
#: Path to the largest body, where it is not that of all others: an answer of the service's own can
#: be larger than any question.
LARGER = {"/runs/read": 8 * 1024 * 1024}
_FILE = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
}


@router.get("/about", response_model=AboutBody, responses=responses(), summary="About")
async def about(runs: TheRuns) -> Response:
    """Say what can be asked about, and who plans and words the answers."""
    parts, options = runs.parts, runs.options
    # A tenant's users are nobody else's business, and one service has many tenants.
    scopes = {
        field: [] if options.tokens else list(values) for field, values in parts.scopes.items()
    }
    return reply(
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
        }
    )


@router.post(
    "/runs/read",
    response_model=RunBody,
    responses=responses(),
    summary="Read a saved run",
    openapi_extra=_FILE,
)
async def read(request: Request) -> Response:
    """Check what ``casewright ask --save`` wrote, and return it with its plan's steps.

    It may be larger than other requests.
    """
    body = await request.body()
    # A large one takes a while to check.
    return await asyncio.to_thread(_read, body)


def _read(body: bytes) -> Response:
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise RefusedError(422, "The file is no saved run: it is not UTF-8.") from None
    saved = parse_run(text, "The file")
    try:
        steps = plan_steps(saved.answer.plan)
    except PlanError as error:
        # `casewright show` prints such a plan as the text that it is; no graph can be drawn of it.
        raise RefusedError(422, f"The file is a damaged run: {cleaned(str(error), 200)}") from None
    answer = saved.answer.to_json()
    try:
        return reply({"question": saved.question, "answer": answer, "plan_steps": steps})
    except RecursionError:
        raise RefusedError(422, "The file is a damaged run: it is nested too deeply.") from None
