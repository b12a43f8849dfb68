"""The end of old threads: those that are answered, and that nobody has used for long."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from casewright.serve.service.checkpoints import Older
from casewright.serve.service.problems import RefusedError
from casewright.serve.service.runs import Runs

#: How often it is looked for old threads.
EVERY_SECONDS = 3600.0
#: Since when ids of checkpoints count time, in steps of 100 nanoseconds.
_BEGIN = datetime(1582, 10, 15, tzinfo=UTC)
log = logging.getLogger("casewright.service")


def first_id_at(when: datetime) -> str:
    """Return the id below which all checkpoints are older: their ids are UUIDs of version 6."""
    steps = (when - _BEGIN) // timedelta(microseconds=1) * 10
    high = steps >> 12
    return f"{high >> 16:08x}-{high & 0xFFFF:04x}-6{steps & 0xFFF:03x}-0000-000000000000"


@asynccontextmanager
async def retiring(runs: Runs, older: Older | None) -> AsyncIterator[None]:
    """Delete old threads now and every hour, where the options say after how many days."""
    days = runs.options.thread_days
    if older is None or days is None:
        yield
        return
    work = asyncio.ensure_future(_for_ever(runs, older, days))
    try:
        yield
    finally:
        work.cancel()
        await asyncio.wait({work})


async def _for_ever(runs: Runs, older: Older, days: float) -> None:
    while True:
        try:
            gone = await retire(runs, older, datetime.now(UTC) - timedelta(days=days))
            if gone:
                log.info("Old threads were deleted: %d.", gone)
        except Exception as error:  # noqa: BLE001 - it is tried again in an hour
            log.warning("Old threads could not be deleted: %s", error)
        await asyncio.sleep(EVERY_SECONDS)


async def retire(runs: Runs, older: Older, before: datetime) -> int:
    """Delete the answered threads that were last used before a time; returns how many.

    One that waits for a reply, or whose run can be resumed, stays however old it is.
    """
    gone, first = 0, first_id_at(before)
    for key in await older(first):
        config: Any = {"configurable": {"thread_id": key}}
        try:
            async with runs.locks.alone(key):
                last, state = await runs.saver.aget_tuple(config), await runs.state(key)
                # Somebody may have used it since it was found.
                if state is not None and state.answered and last.checkpoint["id"] < first:
                    await runs.saver.adelete_thread(key)
                    gone += 1
        except RefusedError:
            # It is at work: not old any more.
            continue
    return gone
