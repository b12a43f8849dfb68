"""Waiting for what another thread or process does, for no longer than a bound."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def until(ready: Callable[[], Any], seconds: float = 30, process: Any = None) -> Any:
    """Wait until something is so, and return it."""
    deadline = time.monotonic() + seconds
    while not (found := ready()):
        assert process is None or process.poll() is None, "the service ended"
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.02)
    return found
