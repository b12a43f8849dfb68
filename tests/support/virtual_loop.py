"""An event loop with a virtual clock that a test advances, and without worker threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose timers run only when a test advances the clock."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def time(self) -> float:
        """Return the seconds by which the clock was advanced."""
        return self.now

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> Any:
        """Call the function at once, because threads would end in a random order."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001
            future.set_exception(error)
        return future

    def settle(self) -> None:
        """Run until all tasks wait for a timer or for the test."""
        self.run_until_complete(self._idle())

    def advance(self, seconds: float) -> None:
        """Advance the clock, and run each timer at its time."""
        end = self.now + seconds
        self.settle()
        while (due := self._next_timer()) is not None and due <= end:
            self.now = max(self.now, due)
            self.settle()
        self.now = end
        self.settle()

    def _next_timer(self) -> float | None:
        timers = self._scheduled  # type: ignore[attr-defined]
        times: list[float] = [timer.when() for timer in timers if not timer.cancelled()]
        return min(times, default=None)

    async def _idle(self) -> None:
        """Wait until no callback was ready in three successive iterations of the loop."""
        idle_iterations = 0
        while idle_iterations < 3:
            await asyncio.sleep(0)
            is_busy = bool(self._ready)  # type: ignore[attr-defined]
            idle_iterations = 0 if is_busy else idle_iterations + 1
