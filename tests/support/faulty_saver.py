"""A checkpointer in memory that fails when a test says so, and knows what it has kept."""

from __future__ import annotations

import asyncio
import sqlite3
from dataclasses import dataclass, field
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver

#: Under this LangGraph keeps what a task returned.
RETURNED = "__return__"


@dataclass
class Disk:
    """What the copies of a checkpointer share.

    Attributes:
        fails_in: After how many writes one fails; never below 0.
        finished: The outcomes of steps that were kept.
    """

    fails_in: int = -1
    finished: list[dict[str, Any]] = field(default_factory=list)


class FaultySaver(InMemorySaver):
    """Keeps checkpoints in memory; a write takes a moment, and may fail."""

    def __init__(self, disk: Disk) -> None:
        super().__init__()
        self.disk = disk

    async def aput(self, *given: Any, **more: Any) -> Any:
        await self._write()
        return await super().aput(*given, **more)

    async def aput_writes(self, config: Any, writes: Any, *given: Any, **more: Any) -> None:
        await self._write()
        await super().aput_writes(config, writes, *given, **more)
        for channel, value in writes:
            if channel == RETURNED:
                self.disk.finished.append(value)

    async def _write(self) -> None:
        await asyncio.sleep(0)
        self.disk.fails_in -= 1
        if self.disk.fails_in == -1:
            raise sqlite3.OperationalError("disk I/O error")
