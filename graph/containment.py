"""Calls of what others wrote: whatever they raise, only the call ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def contained(caller: str) -> Iterator[None]:
    """Make failures of what would end more than the call: the process, or a waiting coroutine."""
    try:
        yield
    except (SystemExit, StopIteration, StopAsyncIteration) as error:
        # Not "from error": contextlib would take that for its own conversion of StopIteration.
        raise RuntimeError(f"{caller} raised {type(error).__name__}") from None
