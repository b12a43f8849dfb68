"""Locks threads (conversations), so that each handles one request at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from casewright.serve.service.problems import RefusedError


class ThreadLocks:
    """The locks of threads within this process; ``locked_keys`` has the keys of locked threads."""

    def __init__(self) -> None:
        self.locked_keys: set[str] = set()

    @asynccontextmanager
    async def lock(self, key: str | None) -> AsyncIterator[None]:
        """Lock a thread, if any; raise ``RefusedError`` if another request has locked it."""
        if key is None:  # The request has no thread.
            yield
            return
        if key in self.locked_keys:
            raise busy_thread_error()
        self.locked_keys.add(key)
        try:
            yield
        finally:
            self.locked_keys.discard(key)

    async def is_locked(self, key: str) -> bool:
        """Return ``True`` if a thread is locked."""
        return key in self.locked_keys


def busy_thread_error() -> RefusedError:
    """Return the error for a thread that another request has locked."""
    return RefusedError(409, "The thread is busy with another request. Wait for its end.")
