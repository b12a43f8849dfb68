"""Where threads are kept, and under which key: a tenant's threads are its own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Container
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from casewright.errors import DependencyError, InputError
from casewright.serve.service.recent import Latest

#: Threads of all tenants together that are kept in memory.
MOST_IN_MEMORY = 1000


def thread_key(domain: str, tenant: str, thread_id: str) -> str:
    """Return the checkpointer's key: a digest of whose thread it is and of its name."""
    text = json.dumps([domain, tenant, thread_id])
    return hashlib.sha256(text.encode()).hexdigest()


def check_threads_file(file: Path) -> None:
    """Look whether threads can be kept in a SQLite file; it is made where it is missing.

    Raises:
        DependencyError: LangGraph's SQLite checkpointer is not installed.
        InputError: The file cannot be written, or is no SQLite database.
    """
    import sqlite3

    try:
        import langgraph.checkpoint.sqlite.aio  # noqa: F401
    except ImportError as error:
        raise DependencyError(
            "A file of threads needs LangGraph's SQLite checkpointer. Run: "
            "pip install 'casewright[checkpoint]'"
        ) from error
    try:
        # What was asked is nobody else's.
        file.touch(mode=0o600, exist_ok=True)
        with sqlite3.connect(file) as opened:
            opened.execute("PRAGMA user_version")
        opened.close()
    except (OSError, sqlite3.Error) as error:
        raise InputError(
            f"The threads' file {file} cannot be used: {error}. Name a SQLite file, or a new file "
            "in a folder that you may write to."
        ) from error


@asynccontextmanager
async def open_checkpoints(file: Path | None) -> AsyncIterator[Any]:
    """Open the checkpointer: a SQLite file, or memory."""
    if file is None:
        from langgraph.checkpoint.memory import InMemorySaver

        yield InMemorySaver()
        return
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    async with AsyncSqliteSaver.from_conn_string(str(file)) as saver:
        await saver.setup()
        yield saver


class RecentThreads:
    """Bounds what threads take in memory: their number, and of each all but its last run.

    Threads in a file are left as they are.
    """

    def __init__(self, saver: Any, *, bounded: bool, most: int = MOST_IN_MEMORY) -> None:
        self._saver = saver
        self._bounded = bounded
        self._threads: Latest[None] = Latest(most)

    async def used(self, tenant: str, key: str, running: Container[str] = ()) -> None:
        """Note that a thread was used; those that are at work are not forgotten for it."""
        if self._bounded:
            for dropped in self._threads.put(tenant, key, None, running):
                await self._saver.adelete_thread(dropped)

    async def begun(self, key: str) -> None:
        """Forget a thread's earlier runs, of which LangGraph would keep every checkpoint."""
        if self._bounded:
            await self._saver.adelete_thread(key)

    def forget(self, tenant: str, key: str) -> None:
        """Note that a thread is gone."""
        self._threads.remove(tenant, key)
