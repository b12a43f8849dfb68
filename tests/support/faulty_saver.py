"""A checkpointer in memory that fails on demand, and records the results that it stored."""

from __future__ import annotations

import asyncio
import sqlite3
from dataclasses import dataclass, field
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver

#: The channel to which LangGraph writes the return value of a task.
RETURNED = "__return__"


@dataclass
class Disk:
    """The state that copies of a checkpointer share.

    Attributes:
        fails_in: Number of writes before the one that fails; no write fails if it is below 0.
        finished: The stored outcomes of steps.
    """

    fails_in: int = -1
    finished: list[dict[str, Any]] = field(default_factory=list)


class FaultySaver(InMemorySaver):
    """Stores checkpoints in memory; a write lets other tasks run first, and may fail."""

    def __init__(self, disk: Disk) -> None:
        super().__init__()
        self.disk = disk

    async def aput(self, *arguments: Any, **options: Any) -> Any:
        await self._write()
        return await super().aput(*arguments, **options)

    async def aput_writes(self, config: Any, writes: Any, *arguments: Any, **options: Any) -> None:
        await self._write()
        await super().aput_writes(config, writes, *arguments, **options)
        for channel, value in writes:
            if channel == RETURNED:
                self.disk.finished.append(value)

    async def _write(self) -> None:
        await asyncio.sleep(0)
        self.disk.fails_in -= 1
        if self.disk.fails_in == -1:
            raise sqlite3.OperationalError("disk I/O error")
