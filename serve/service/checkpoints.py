"""Where threads are kept, and under which key: a tenant's threads are its own."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from casewright.errors import DependencyError, InputError

#: Threads that are kept in memory; those that were used longest ago go first.
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
    """Forgets the threads that were used longest ago, where they are kept in memory."""

    def __init__(self, saver: Any, *, bounded: bool, most: int = MOST_IN_MEMORY) -> None:
        self._saver = saver
        self._most = most if bounded else 0
        self._keys: OrderedDict[str, None] = OrderedDict()

    async def used(self, key: str) -> None:
        """Note that a thread was used."""
        if not self._most:
            return
        self._keys[key] = None
        self._keys.move_to_end(key)
        while len(self._keys) > self._most:
            oldest, _ = self._keys.popitem(last=False)
            await self._saver.adelete_thread(oldest)

    def forget(self, key: str) -> None:
        """Note that a thread is gone."""
        self._keys.pop(key, None)
