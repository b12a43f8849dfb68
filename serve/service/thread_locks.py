"""A thread works on one request at a time: who has it, in this process or in all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from casewright.serve.service.problems import RefusedError


class ThreadLocks:
    """The threads that are at work in this process.

    Attributes:
        keys: Of these threads.
    """

    def __init__(self) -> None:
        self.keys: set[str] = set()

    @asynccontextmanager
    async def alone(self, key: str | None) -> AsyncIterator[None]:
        """Have a thread alone; ``None`` is no thread.

        Raises:
            RefusedError: Another request has it.
        """
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

    async def held(self, key: str) -> bool:
        """Say whether a thread is at work."""
        return key in self.keys


def busy_thread() -> RefusedError:
    """Return the error of a thread that works on another request."""
    return RefusedError(409, "The thread is busy with another request. Wait for its end.")
