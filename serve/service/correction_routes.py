"""Putting a wrong plan right: an annotated message for the operator's file."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Response

from casewright.finetune.queries.correction import Outcome, corrected, keep_correction
from casewright.serve.service.models import CorrectedBody, CorrectionBody
from casewright.serve.service.problems import RefusedError, responses
from casewright.serve.service.replies import BEARER, TheCaller, TheRuns, reply

router = APIRouter(tags=["corrections"], dependencies=[BEARER])
#: Bytes that the file may have: no tenant may fill the disk.
MOST_BYTES = 64 * 1024 * 1024


@router.post(
    "/corrections",
    response_model=CorrectedBody,
    responses=responses(409),
    summary="Put a plan right",
)
async def correct(body: CorrectionBody, runs: TheRuns, caller: TheCaller) -> Response:
    """Keep a question with its right plan as an annotated message.

    It is checked against the tools, and changes no plan until the operator takes it over.
    """
    file = runs.options.corrections_file
    if file is None:
        raise RefusedError(409, "Corrections are not kept here: the setting corrections_file.")
    history = [{"question": turn.question, "answer": turn.answer} for turn in body.history]
    # Whose it is: the operator may trust some tenants and not others.
    record = corrected(
        *(body.question, body.plan, runs.parts.toolbox, body.context, history), caller.tenant
    )
    outcome = await asyncio.to_thread(_keep, file, record)
    return reply({"id": record["id"], "outcome": outcome})


def _keep(file: Path, record: dict[str, Any]) -> Outcome:
    return keep_correction(file, record, MOST_BYTES)
