"""Deletes old threads: those that are answered and were not used for some days."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from casewright.serve.service.checkpoints import FindOlder
from casewright.serve.service.problems import RefusedError
from casewright.serve.service.runs import Runs

#: The interval between searches for old threads.
INTERVAL_SECONDS = 3600.0
#: The epoch of the times in checkpoint ids, which count steps of 100 nanoseconds.
_EPOCH = datetime(1582, 10, 15, tzinfo=UTC)
log = logging.getLogger("casewright.service")


def first_id_after(when: datetime) -> str:
    """Return the version-6 UUID (RFC 9562) that is above the ids of all earlier checkpoints."""
    steps = (when - _EPOCH) // timedelta(microseconds=1) * 10
    high = steps >> 12
    return f"{high >> 16:08x}-{high & 0xFFFF:04x}-6{steps & 0xFFF:03x}-0000-000000000000"


@asynccontextmanager
async def retire_in_background(runs: Runs, find_older: FindOlder | None) -> AsyncIterator[None]:
    """Delete old threads now and every hour, if the options give a number of days."""
    days = runs.options.thread_days
    if find_older is None or days is None:
        yield
        return
    work = asyncio.ensure_future(_retire_hourly(runs, find_older, days))
    try:
        yield
    finally:
        work.cancel()
        await asyncio.wait({work})


async def _retire_hourly(runs: Runs, find_older: FindOlder, days: float) -> None:
    while True:
        try:
            if deleted := await retire(runs, find_older, datetime.now(UTC) - timedelta(days=days)):
                log.info("Old threads were deleted: %d.", deleted)
        except Exception as error:  # noqa: BLE001 - retried in an hour
            log.warning("Old threads could not be deleted: %s", error)
        await asyncio.sleep(INTERVAL_SECONDS)


async def retire(runs: Runs, find_older: FindOlder, before: datetime) -> int:
    """Delete the answered threads that were last used before a time; return their number."""
    deleted, first_id = 0, first_id_after(before)
    for key in await find_older(first_id):
        config: Any = {"configurable": {"thread_id": key}}
        try:
            async with runs.locks.lock(key):
                checkpoint, state = await runs.saver.aget_tuple(config), await runs.state(key)
                # The thread may have been used since the search.
                if state is not None and state.answered and checkpoint.checkpoint["id"] < first_id:
                    await runs.saver.adelete_thread(key)
                    deleted += 1
        except RefusedError:
            # The thread is at work, so no longer old.
            continue
    return deleted
