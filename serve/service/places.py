"""Places to work in, of which no tenant takes all."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Places:
    """Places to work in.

    Args:
        most: How many there are.
        share: How many of them one tenant gets; who waits for its own share takes none of others'.
    """

    def __init__(self, most: int, share: int) -> None:
        self._all = asyncio.Semaphore(most)
        self._own: defaultdict[str, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(share)
        )

    @asynccontextmanager
    async def one_of(self, tenant: str) -> AsyncIterator[None]:
        """Hold a place for a tenant, once there is one."""
        async with self._own[tenant], self._all:
            yield
