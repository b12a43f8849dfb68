"""An event loop of its own, for calls that have to clean up after themselves."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

Answer = TypeVar("Answer")
_lock = threading.Lock()
_running: tuple[int, asyncio.AbstractEventLoop] | None = None


async def in_background(work: Coroutine[Any, Any, Answer]) -> Answer:
    """Await something that runs on the background loop; who is cancelled cancels it.

    What has to end a process or a connection may take seconds for it. On the caller's loop that
    would be cut short: a step that is out of time is not waited for, and its loop may end at once.
    """
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, _loop()))


def _loop() -> asyncio.AbstractEventLoop:
    global _running
    with _lock:
        # A forked process has the loop, and no thread that runs it.
        if _running is None or _running[0] != os.getpid():
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, daemon=True, name="casewright-loop").start()
            _running = os.getpid(), loop
        return _running[1]
