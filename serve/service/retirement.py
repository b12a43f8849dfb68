"""Deletes threads that are answered and have not been used for ``thread_days``."""

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

SEARCH_INTERVAL_SECONDS = 3600.0
#: A checkpoint's id contains its time: the number of 100-nanosecond ticks since this epoch.
_EPOCH = datetime(1582, 10, 15, tzinfo=UTC)
log = logging.getLogger("casewright.service")


def first_id_after(when: datetime) -> str:
    """Return a version-6 UUID (RFC 9562) that is above all ids of checkpoints before a time."""
    ticks = (when - _EPOCH) // timedelta(microseconds=1) * 10
    high_bits = ticks >> 12
    return f"{high_bits >> 16:08x}-{high_bits & 0xFFFF:04x}-6{ticks & 0xFFF:03x}-0000-000000000000"


@asynccontextmanager
async def retire_in_background(runs: Runs, find_older: FindOlder | None) -> AsyncIterator[None]:
    """Delete old threads now and every hour while the context lasts, if ``thread_days`` is set."""
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
            if count := await retire(runs, find_older, datetime.now(UTC) - timedelta(days=days)):
                log.info("Old threads were deleted: %d.", count)
        except Exception as error:  # noqa: BLE001 - retried in an hour
            log.warning("Old threads could not be deleted: %s", error)
        await asyncio.sleep(SEARCH_INTERVAL_SECONDS)


async def retire(runs: Runs, find_older: FindOlder, before: datetime) -> int:
    """Delete the answered threads that were last used before a time; return their number."""
    deleted_count, id_limit = 0, first_id_after(before)
    for key in await find_older(id_limit):
        config: Any = {"configurable": {"thread_id": key}}
        try:
            async with runs.locks.lock(key):
                stored, state = await runs.saver.aget_tuple(config), await runs.state(key)
                if state is None or not state.is_answered:
                    continue
                # The thread may have been used since the search.
                if stored.checkpoint["id"] < id_limit:
                    await runs.saver.adelete_thread(key)
                    deleted_count += 1
        except RefusedError:
            # Another request uses the thread, which is no longer old.
            continue
    return deleted_count
