"""Kept answers: a tenant's own, and how one becomes another of them."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path, Query, Response

from casewright.serve.service.models import CaseBody, CasesBody, KeptBody
from casewright.serve.service.problems import RefusedError, responses
from casewright.serve.service.replies import BEARER, TheCaller, TheRuns, reply
from casewright.stores import Case

router = APIRouter(tags=["cases"], dependencies=[BEARER])
CasePath = Annotated[UUID, Path(description="The case's id.")]
RunPath = Annotated[UUID, Path(description="The answer's run_id.")]


@router.get("/cases", response_model=CasesBody, responses=responses(), summary="Kept answers")
async def cases(
    runs: TheRuns,
    caller: TheCaller,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
) -> Response:
    """Return the tenant's kept answers, the newest first."""
    found = await runs.kept(caller)
    shown = [_shown(case) for case in found[offset : offset + limit]]
    return reply({"total": len(found), "cases": shown})


@router.get(
    "/cases/{case_id}", response_model=CaseBody, responses=responses(404), summary="A kept answer"
)
async def case(case_id: CasePath, runs: TheRuns, caller: TheCaller) -> Response:
    """Return one kept answer of the tenant."""
    found = None
    if runs.answers is not None:
        found = await asyncio.to_thread(runs.answers.get, caller.tenant, str(case_id))
    if found is None:
        raise _unknown()
    return reply(_shown(found))


@router.delete("/cases/{case_id}", status_code=204, responses=responses(404), summary="Delete one")
async def delete(case_id: CasePath, runs: TheRuns, caller: TheCaller) -> None:
    """Delete a kept answer of the tenant."""
    if runs.answers is None or not await asyncio.to_thread(
        runs.answers.delete, caller.tenant, str(case_id)
    ):
        raise _unknown()


@router.post(
    "/runs/{run_id}/approve",
    response_model=KeptBody,
    responses=responses(404, 409),
    summary="Approve an answer",
)
async def approve(run_id: RunPath, runs: TheRuns, caller: TheCaller) -> Response:
    """Keep the answer of one of the tenant's latest runs as a case."""
    return reply(await runs.approve(str(run_id), caller))


def _unknown() -> RefusedError:
    return RefusedError(404, "There is no such case.")


def _shown(case: Case) -> dict[str, Any]:
    solution = case.solution
    return {
        "id": case.id,
        "question": case.problem["question"],
        "answer": solution["answer"],
        "plan": solution["plan"],
        "citations": solution["citations"],
        "sources": solution["sources"],
        "kept_by": case.result["kept_by"],
        "created": case.created,
    }
