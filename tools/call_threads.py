"""Threads for calls that may hang: how many there may be, and whose they are."""

from __future__ import annotations

import threading
from collections import Counter
from contextvars import ContextVar

from casewright.errors import BusyError

#: Whose call it is, such as a tenant's; empty where nobody says so.
owner: ContextVar[str] = ContextVar("casewright_call_owner", default="")


class CallThreads:
    """Places for threads that nobody joins.

    A place is free again when its thread has ended, however long ago whoever waited for it went.

    Args:
        most: Threads in all.
        most_of_one: Threads of one owner, where there is one.
    """

    def __init__(self, most: int, most_of_one: int) -> None:
        self._most = most
        self._most_of_one = most_of_one
        self._lock = threading.Lock()
        self._taken: Counter[str] = Counter()

    def start(self, thread: threading.Thread, whose: str) -> None:
        """Start a thread, which says at its end that it has ended.

        Raises:
            BusyError: There is no place for it.
        """
        with self._lock:
            own = self._taken[whose] >= self._most_of_one and whose
            if own or self._taken.total() >= self._most:
                raise BusyError(
                    f"{self._taken.total()} threads of calls are at work, {self._taken[whose]} of "
                    "them for this caller, and no more may be begun. Wait until some have ended; "
                    "give tools that hang a timeout of their own, or let them run in a process."
                )
            self._taken[whose] += 1
        try:
            thread.start()
        except RuntimeError as error:
            self.ended(whose)
            raise BusyError(f"The system starts no more threads: {error}. Try again.") from error

    def ended(self, whose: str) -> None:
        """Note that a thread has ended."""
        with self._lock:
            self._taken[whose] -= 1
            if not self._taken[whose]:
                del self._taken[whose]


_threads = CallThreads(1024, 1024)


def call_threads() -> CallThreads:
    """Return the places of this process."""
    return _threads


def bound_call_threads(most: int, most_of_one: int) -> None:
    """Give this process so many places; threads that run already are not counted any more."""
    global _threads
    _threads = CallThreads(most, most_of_one)
