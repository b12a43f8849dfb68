"""An event loop whose time passes when a test says so, and that does nothing in threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any


class VirtualLoop(asyncio.SelectorEventLoop):
    """Runs what is ready, and nothing that waits for time, until time is let pass."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def time(self) -> float:
        """Seconds that were let pass."""
        return self.now

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> Any:
        """Call at once: in a thread it would end in another order each time."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001
            future.set_exception(error)
        return future

    def settle(self) -> None:
        """Run until everything waits for a time or for a test."""
        self.run_until_complete(self._idle())

    def let_pass(self, seconds: float) -> None:
        """Let time pass, timer by timer."""
        ends = self.now + seconds
        self.settle()
        while (due := self._next()) is not None and due <= ends:
            self.now = max(self.now, due)
            self.settle()
        self.now = ends
        self.settle()

    def _next(self) -> float | None:
        timers = self._scheduled  # type: ignore[attr-defined]
        whens: list[float] = [timer.when() for timer in timers if not timer.cancelled()]
        return min(whens, default=None)

    async def _idle(self) -> None:
        quiet = 0
        while quiet < 3:
            await asyncio.sleep(0)
            quiet = 0 if self._ready else quiet + 1  # type: ignore[attr-defined]
