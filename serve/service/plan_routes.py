"""The routes of pinned plans, which the operator keeps in a folder."""

from __future__ import annotations

import asyncio
import logging
import pathlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Path, Response

from casewright.errors import InputError, PlanError
from casewright.planner import PinnedPlan, PlanRequest, diff_plans, parse_plan
from casewright.planner.pinned import NAME, parse_pinned, pin_plan, pinned_names, read_pinned
from casewright.serve.service import models, routes
from casewright.serve.service.problems import RefusedError, responses
from casewright.serve.service.routes import TheKey, TheRuns, TheTenant, json_response, openapi
from casewright.tools import Toolbox

plans = APIRouter(prefix="/plans", tags=["plans"], dependencies=[routes.BEARER])
#: A folder with this number of plans gets no further plan over HTTP.
MAX_PLANS = 1000
log = logging.getLogger("casewright.service")
PlanName = Annotated[str, Path(pattern=f"^{NAME.pattern}$", description="The plan's name.")]


@plans.get("", **openapi(models.PinnedListBody), summary="Pinned plans")
async def list_plans(runs: TheRuns) -> Response:
    """Return the pinned plans of the service; none if plans_folder is not set."""
    folder, toolbox = runs.options.plans_folder, runs.parts.toolbox
    return json_response({"plans": await asyncio.to_thread(_plans_as_json, folder, toolbox)})


@plans.post("/diff", **openapi(models.DifferenceBody), summary="Compare two plans")
async def diff(body: models.DiffBody) -> Response:
    """Compare two plans step by step, and return the changes of each step."""
    with _refuse_invalid_plans():
        first, second = parse_plan(body.first), parse_plan(body.second)
    steps = await asyncio.to_thread(diff_plans, first, second)
    same = all(step.change == "same" for step in steps)
    return json_response({"same": same, "steps": [step.to_json() for step in steps]})


@plans.put(
    "/{name}/pin",
    status_code=201,
    response_model=models.PinnedBody,
    responses={
        200: {"description": "The plan replaced another plan.", "model": models.PinnedBody},
        **responses(409),
    },
    summary="Pin a plan",
)
async def pin(name: PlanName, body: models.PinBody, runs: TheRuns, tenant: TheTenant) -> Response:
    """Pin a plan under a name for all tenants, if the setting pin_plans allows it."""
    options, toolbox = runs.options, runs.parts.toolbox
    folder = options.plans_folder
    if folder is None or not options.pin_plans:
        raise RefusedError(
            409, "Plans cannot be pinned over HTTP: see the settings plans_folder and pin_plans."
        )
    pinned, is_replacement = await asyncio.to_thread(_save_pinned, folder, name, body, toolbox)
    log.info("The tenant %s pinned the plan %s.", tenant, name)
    # The plan was just checked against the tools, so there are no differences.
    return json_response({**pinned.to_json(), "differences": []}, 200 if is_replacement else 201)


@plans.post(
    "/{name}/run", **openapi(models.AnswerBody, 404, 409, waits=True), summary="Run a pinned plan"
)
async def run(
    name: PlanName, body: models.RunPlanBody, runs: TheRuns, tenant: TheTenant, key: TheKey = None
) -> Response:
    """Run a pinned plan, and return the answer; budgets, approval and citations are as in /ask."""
    folder, toolbox = runs.options.plans_folder, runs.parts.toolbox
    pinned = await asyncio.to_thread(_find_plan, folder, name)
    _refuse_changed_tools(pinned, toolbox)
    with _refuse_invalid_plans():
        question, planner = pinned.filled(toolbox, body.values)
        PlanRequest(question, toolbox, body.context).validate(planner.fixed)
    fields = body.model_dump()
    attempt = runs.attempt(key, tenant, body.thread_id, "plans", name, fields)
    del fields["values"]
    fields |= {"question": question, "history": [], "planner": planner}
    pinned_ask = models.PinnedAsk.model_construct(**fields)
    return await routes.respond(runs, pinned_ask, tenant, attempt)


@contextmanager
def _refuse_invalid_plans() -> Iterator[None]:
    """Turn an error about an invalid plan into a refusal with status 422."""
    try:
        yield
    except PlanError as error:
        raise RefusedError(422, str(error)) from None


def _refuse_changed_tools(pinned: PinnedPlan, toolbox: Toolbox) -> None:
    if changes := pinned.differences(toolbox):
        raise RefusedError(409, f"The tools of this plan have changed: {'; '.join(changes)}.")


def _save_pinned(
    folder: pathlib.Path, name: str, body: models.PinBody, toolbox: Toolbox
) -> tuple[PinnedPlan, bool]:
    """Save a plan; return the pinned plan, and ``True`` if it replaced another plan."""
    with _refuse_invalid_plans():
        if body.file is None:
            question, plan = body.question, parse_plan(body.plan)
            pinned = pin_plan(name, question, plan, toolbox, body.parameters)
        else:
            pinned = parse_pinned(name, body.file)
            _refuse_changed_tools(pinned, toolbox)
            question, planner = pinned.filled(toolbox, {})
            plan = planner.fixed
        PlanRequest(question, toolbox, body.context).validate(plan)
    is_replacement = name in pinned_names(folder)
    try:
        pinned.save(folder, replace=body.replace, most=MAX_PLANS)
    except InputError:  # A taken name is a conflict; other errors are raised again.
        if not body.replace and name in pinned_names(folder):
            raise RefusedError(
                409, "There is a plan of this name. Choose another, or replace it."
            ) from None
        raise
    return pinned, is_replacement


def _find_plan(folder: pathlib.Path | None, name: str) -> PinnedPlan:
    if folder is None or name not in pinned_names(folder):
        raise RefusedError(404, "There is no such plan.")
    return read_pinned(folder, name)


def _plans_as_json(folder: pathlib.Path | None, toolbox: Toolbox) -> list[dict[str, Any]]:
    plans_json: list[dict[str, Any]] = []
    if folder is None:
        return plans_json
    for name in pinned_names(folder):
        # A damaged plan must not hide the others; the route that runs it reports the damage.
        try:
            pinned = read_pinned(folder, name)
        except InputError:
            continue
        plans_json.append({**pinned.to_json(), "differences": pinned.differences(toolbox)})
    return plans_json
