"""Threads that use one network take turns."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from casewright.errors import DecodingError
from casewright.planner.decoding.limits import Limits


@contextmanager
def turn(lock: threading.Lock, limits: Limits) -> Iterator[None]:
    """Hold a network's lock.

    Raises:
        DecodingError: The deadline was over before the others were done.
    """
    left = -1.0 if limits.deadline is None else max(0.0, limits.deadline - time.perf_counter())
    if not lock.acquire(timeout=left):
        raise DecodingError("The model was busy with other plans until time was up.")
    try:
        yield
    finally:
        lock.release()
