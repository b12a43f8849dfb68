"""Locks threads (conversations), so that each handles one request at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from casewright.serve.service.problems import RefusedError


class ThreadLocks:
    """The locks of threads within this process; ``keys`` contains the locked threads' keys."""

    def __init__(self) -> None:
        self.keys: set[str] = set()

    @asynccontextmanager
    async def lock(self, key: str | None) -> AsyncIterator[None]:
        """Lock a thread, if any; raise ``RefusedError`` if another request has locked it."""
        if key is None:
            yield
            return
        if key in self.keys:
            raise busy_thread()
        self.keys.add(key)
        try:
            yield
        finally:
            self.keys.discard(key)

    async def is_locked(self, key: str) -> bool:
        """Return ``True`` if a thread is locked."""
        return key in self.keys


def busy_thread() -> RefusedError:
    """Return the error for a thread that another request has locked."""
    return RefusedError(409, "The thread is busy with another request. Wait for its end.")
