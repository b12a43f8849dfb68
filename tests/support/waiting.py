"""Waiting for another thread or process, with a timeout."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def until(ready: Callable[[], Any], seconds: float = 30, process: Any = None) -> Any:
    """Call ``ready`` until it returns a true value, and return this value.

    Fail after ``seconds``, or if ``process`` ends.
    """
    deadline = time.monotonic() + seconds
    while not (value := ready()):
        assert process is None or process.poll() is None, "the service ended"
        assert time.monotonic() < deadline, f"not ready after {seconds} seconds"
        time.sleep(0.02)
    return value
