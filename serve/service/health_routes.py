"""Whether the service lives, and whether it can answer."""

from __future__ import annotations

import asyncio
import logging

from fastapi import APIRouter, Request, Response

from casewright.domains.late_store import waits
from casewright.serve.service.models import HealthBody
from casewright.serve.service.problems import RefusedError, responses
from casewright.serve.service.replies import reply
from casewright.serve.service.runs import Runs

router = APIRouter(tags=["health"])
#: A store that takes longer to count its cases is not ready.
SECONDS = 5.0
log = logging.getLogger("casewright.service")


@router.head("/healthz", include_in_schema=False)
@router.get("/healthz", response_model=HealthBody, responses=responses(), summary="Alive")
async def alive() -> Response:
    """Answer, as long as the process does."""
    return reply({"status": "alive"})


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz", response_model=HealthBody, responses=responses(), summary="Ready")
async def ready(request: Request) -> Response:
    """Say whether questions can be answered: the stores and the threads' database do answer."""
    runs: Runs = request.app.state.runs
    try:
        async with asyncio.timeout(SECONDS):
            await _counted(request, runs)
            await runs.saver.aget_tuple({"configurable": {"thread_id": "", "checkpoint_ns": ""}})
    except Exception as error:
        log.warning("The service is not ready: %s", error)
        raise RefusedError(503, "A store or the threads' database does not answer.") from error
    return reply({"status": "ready"})


async def _counted(request: Request, runs: Runs) -> None:
    """Wait for the stores' answer; anyone may ask, so all who do wait for one and the same."""
    counting: asyncio.Future[None] | None = getattr(request.app.state, "counting", None)
    if counting is None or counting.done():
        counting = asyncio.ensure_future(asyncio.to_thread(_count, runs))
        # Whoever waited may have gone.
        counting.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        request.app.state.counting = counting
    await asyncio.shield(counting)


def _count(runs: Runs) -> None:
    for store in runs.parts.stores.values():
        if not waits(store):
            store.count()
    if runs.answers is not None:
        runs.answers.check()
