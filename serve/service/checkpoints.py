"""Where threads are kept, and under which key: a tenant's threads are its own."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Container
from contextlib import AbstractContextManager, asynccontextmanager, closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from casewright.errors import DependencyError, InputError
from casewright.serve.service.checkpoint_sums import SummedSerializer
from casewright.serve.service.postgres import check_threads_url, open_postgres
from casewright.serve.service.recent import Latest
from casewright.serve.service.repeats import TTL, swept
from casewright.serve.service.thread_locks import ThreadLocks

if TYPE_CHECKING:
    from casewright.serve.service.options import ServiceOptions

#: Threads whose last checkpoint has an id below a given one.
LAST_BELOW = "SELECT thread_id FROM checkpoints GROUP BY thread_id HAVING MAX(checkpoint_id) < "
Older = Callable[[str], Awaitable[list[str]]]
#: Threads of all tenants together that are kept in memory.
MOST_IN_MEMORY = 1000
#: What looking through a threads' file may take when a service starts.
LOOK_SECONDS = 5.0


def thread_key(domain: str, tenant: str, thread_id: str) -> str:
    """Return the checkpointer's key: a digest of whose thread it is and of its name."""
    text = json.dumps([domain, tenant, thread_id])
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Threads:
    """Where threads are kept.

    Attributes:
        saver: LangGraph's checkpointer.
        locks: Which threads are at work.
        store: LangGraph's store, for what requests returned; see ``repeats``.
        older: Returns the threads whose last checkpoint has an id below a given one; ``None``
            where threads are in memory.
    """

    saver: Any
    locks: ThreadLocks
    store: Any
    older: Older | None = None


def hold_threads(options: ServiceOptions) -> AbstractContextManager[Any]:
    """Look whether threads can be kept where the options say; holds a file until it is left.

    Raises:
        DependencyError: LangGraph's checkpointer is not installed.
        InputError: The file or the database cannot be used, or another service has the file.
    """
    if options.threads_url is not None:
        if options.threads_file is not None:
            raise InputError(
                "Threads have a file and a database: give one of threads_file and threads_url."
            )
        check_threads_url(options.threads_url)
    elif options.threads_file is not None:
        return _held(options.threads_file)
    return nullcontext()


def _held(file: Path) -> IO[str]:
    """Return a file that is locked beside the threads' file, which is made where it is missing.

    Which thread is at work each service knows of its own alone.
    """
    import sqlite3

    import portalocker

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
        beside = file.with_name(f"{file.name}.lock")
        beside.touch(mode=0o600, exist_ok=True)
        held = beside.open("a")
        portalocker.lock(held, portalocker.LOCK_EX | portalocker.LOCK_NB)
        damage = _damage(file)
    except portalocker.AlreadyLocked as error:
        held.close()
        raise InputError(
            f"Another service has the threads' file {file}. Give each a file of its own, or let "
            "all of them share a database: --threads postgresql://USER@HOST/NAME."
        ) from error
    except (OSError, sqlite3.Error) as error:
        raise InputError(
            f"The threads' file {file} cannot be used: {error}. Name a SQLite file, or a new file "
            "in a folder that you may write to."
        ) from error
    if damage:
        held.close()
        raise InputError(
            f"The threads' file {file} is damaged: {damage}. Save what can be read by SQLite's "
            ".recover, or name a new file."
        )
    return held


def _damage(file: Path) -> str:
    """Return what SQLite finds wrong within ``LOOK_SECONDS``; empty where that is nothing."""
    import sqlite3

    ends = time.monotonic() + LOOK_SECONDS
    with closing(sqlite3.connect(file)) as opened:
        opened.execute("PRAGMA user_version")
        opened.set_progress_handler(lambda: time.monotonic() > ends, 10_000)
        try:
            ((said,),) = opened.execute("PRAGMA integrity_check(1)").fetchall()
        except sqlite3.OperationalError:
            # Its time is over: of a large file each value still has its checksum.
            return ""
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            # A message of SQLite's quotes what is damaged, whether or not that is UTF-8.
            return str(error)
    return "" if said == "ok" else " ".join(str(said).split())


@asynccontextmanager
async def open_checkpoints(options: ServiceOptions) -> AsyncIterator[Threads]:
    """Open what ``hold_threads`` looked at: a database, a SQLite file, or memory."""
    if options.threads_url is not None:
        from langgraph.store.postgres.aio import AsyncPostgresStore

        async with open_postgres(options.threads_url) as (saver, locks, pool):
            saver.serde = SummedSerializer()

            async def older(first_id: str) -> list[str]:
                async with pool.connection() as opened:
                    found = await opened.execute(f"{LAST_BELOW} %s", (first_id,))
                    return [row["thread_id"] for row in await found.fetchall()]

            async with swept(AsyncPostgresStore(pool, ttl=TTL)) as store:
                yield Threads(saver, locks, store, older)
    elif options.threads_file is not None:
        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
        from langgraph.store.sqlite.aio import AsyncSqliteStore

        async with AsyncSqliteSaver.from_conn_string(str(options.threads_file)) as saver:
            await saver.setup()
            saver.serde = SummedSerializer()

            async def older(first_id: str) -> list[str]:
                async with saver.lock, saver.conn.execute(f"{LAST_BELOW} ?", (first_id,)) as found:
                    return [row[0] async for row in found]

            async with (
                AsyncSqliteStore.from_conn_string(str(options.threads_file), ttl=TTL) as made,
                swept(made) as store,
            ):
                yield Threads(saver, ThreadLocks(), store, older)
    else:
        from langgraph.checkpoint.memory import InMemorySaver
        from langgraph.store.memory import InMemoryStore

        yield Threads(InMemorySaver(), ThreadLocks(), InMemoryStore())


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
