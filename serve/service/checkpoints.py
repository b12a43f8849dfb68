"""Opens the storage of threads (conversations); the key of a thread depends on its tenant."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Container
from contextlib import AbstractContextManager, asynccontextmanager, closing, nullcontext
from pathlib import Path
from typing import IO, Any, NamedTuple

from casewright.errors import DependencyError, InputError
from casewright.serve.service.checkpoint_sums import ChecksumSerializer
from casewright.serve.service.options import ServiceOptions
from casewright.serve.service.postgres import check_threads_url, open_postgres
from casewright.serve.service.recent import TenantLru
from casewright.serve.service.repeats import TTL_CONFIG, deleting_expired
from casewright.serve.service.thread_locks import ThreadLocks

#: SQL that selects threads by their last checkpoint's id; callers append an upper bound.
SELECT_OLDER = "SELECT thread_id FROM checkpoints GROUP BY thread_id HAVING MAX(checkpoint_id) < "
FindOlder = Callable[[str], Awaitable[list[str]]]
#: Maximum number of threads in memory, of all tenants together.
MAX_IN_MEMORY = 1000
#: Maximum time for which a service, at its start, checks the integrity of its threads' file.
CHECK_SECONDS = 5.0


def thread_key(domain: str, tenant: str, thread_id: str) -> str:
    """Return the key under which the checkpointer stores a thread: a digest of the arguments."""
    text = json.dumps([domain, tenant, thread_id])
    return hashlib.sha256(text.encode()).hexdigest()


class ThreadStorage(NamedTuple):
    """The opened storage of threads.

    Attributes:
        saver: LangGraph's checkpointer.
        store: LangGraph's store, for responses to repeated requests; see ``repeats``.
        find_older: Returns the keys of the threads whose last checkpoint's id is below a given
            id. ``None`` if threads are in memory.
    """

    saver: Any
    locks: ThreadLocks
    store: Any
    find_older: FindOlder | None = None


def lock_threads(options: ServiceOptions) -> AbstractContextManager[Any]:
    """Check the storage of threads, and lock its file, if any; the returned context unlocks it.

    Raises:
        DependencyError: LangGraph's checkpointer is not installed.
        InputError: The file or the database is unusable, or another service uses the file.
    """
    if options.threads_url is not None:
        if options.threads_file is not None:
            raise InputError(
                "Threads have a file and a database. Give one of threads_file and threads_url."
            )
        check_threads_url(options.threads_url)
    elif options.threads_file is not None:
        return _open_lock_file(options.threads_file)
    return nullcontext()


def _open_lock_file(file: Path) -> IO[str]:
    """Lock a threads' file, and return the open lock file; create both files if they are missing.

    Only one service may use the threads' file, since each keeps its locks of threads in memory.
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
        # Questions are private: no other user may read the file.
        file.touch(mode=0o600, exist_ok=True)
        lock_path = file.with_name(f"{file.name}.lock")
        lock_path.touch(mode=0o600, exist_ok=True)
        lock_file = lock_path.open("a")
        portalocker.lock(lock_file, portalocker.LOCK_EX | portalocker.LOCK_NB)
        damage = _find_damage(file)
    except portalocker.AlreadyLocked as error:
        lock_file.close()
        raise InputError(
            f"Another service has the threads' file {file}. Give each service its own file, or let "
            "all share a database: --threads postgresql://USER@HOST/NAME."
        ) from error
    except (OSError, sqlite3.Error) as error:
        raise InputError(
            f"The threads' file {file} cannot be used: {error}. Name a SQLite file, or a new file "
            "in a folder that you may write to."
        ) from error
    if damage:
        lock_file.close()
        raise InputError(
            f"The threads' file {file} is damaged: {damage}. Recover it by SQLite's .recover, or "
            "name a new file."
        )
    return lock_file


def _find_damage(file: Path) -> str:
    """Return the damage that SQLite finds within ``CHECK_SECONDS``; empty if it finds none."""
    import sqlite3

    deadline = time.monotonic() + CHECK_SECONDS
    with closing(sqlite3.connect(file)) as connection:
        # This raises an error if the file is no SQLite file.
        connection.execute("PRAGMA user_version")
        connection.set_progress_handler(lambda: time.monotonic() > deadline, 10_000)
        try:
            ((result,),) = connection.execute("PRAGMA integrity_check(1)").fetchall()
        except sqlite3.OperationalError:
            # The deadline has passed. Checksums still reveal damage when a value is read.
            return ""
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            # SQLite's message quotes the damaged text, which may not be UTF-8.
            return str(error)
    return "" if result == "ok" else " ".join(str(result).split())


@asynccontextmanager
async def open_checkpoints(options: ServiceOptions) -> AsyncIterator[ThreadStorage]:
    """Open the storage that ``lock_threads`` checked: a database, a SQLite file, or memory."""
    if options.threads_url is not None:
        from langgraph.store.postgres.aio import AsyncPostgresStore

        async with open_postgres(options.threads_url) as (saver, locks, pool):
            saver.serde = ChecksumSerializer()

            async def find_older(id_limit: str) -> list[str]:
                async with pool.connection() as connection:
                    rows = await connection.execute(f"{SELECT_OLDER} %s", (id_limit,))
                    return [row["thread_id"] for row in await rows.fetchall()]

            async with deleting_expired(AsyncPostgresStore(pool, ttl=TTL_CONFIG)) as store:
                yield ThreadStorage(saver, locks, store, find_older)
    elif options.threads_file is not None:
        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
        from langgraph.store.sqlite.aio import AsyncSqliteStore

        file = str(options.threads_file)
        async with AsyncSqliteSaver.from_conn_string(file) as saver:
            await saver.setup()
            saver.serde = ChecksumSerializer()

            async def find_older(id_limit: str) -> list[str]:
                async with saver.lock, saver.conn.execute(f"{SELECT_OLDER} ?", (id_limit,)) as rows:
                    return [row[0] async for row in rows]

            store_opening = AsyncSqliteStore.from_conn_string(file, ttl=TTL_CONFIG)
            async with store_opening as store, deleting_expired(store):
                yield ThreadStorage(saver, ThreadLocks(), store, find_older)
    else:
        from langgraph.checkpoint.memory import InMemorySaver
        from langgraph.store.memory import InMemoryStore

        yield ThreadStorage(InMemorySaver(), ThreadLocks(), InMemoryStore())


class RecentThreads:
    """If ``bounded``, keeps at most ``limit`` threads in memory, and only the last run of each."""

    def __init__(self, saver: Any, *, bounded: bool, limit: int = MAX_IN_MEMORY) -> None:
        self._saver = saver
        self._is_bounded = bounded
        self._used_threads: TenantLru[None] = TenantLru(limit)

    async def mark_used(self, tenant: str, key: str, running: Container[str] = ()) -> None:
        """Mark a thread as used now; delete threads beyond the limit that are not ``running``."""
        if self._is_bounded:
            for evicted in self._used_threads.put(tenant, key, None, running):
                await self._saver.adelete_thread(evicted)

    async def begin_run(self, key: str) -> None:
        """Delete a thread's earlier runs before a new run; LangGraph itself would keep them."""
        if self._is_bounded:
            await self._saver.adelete_thread(key)

    def forget(self, tenant: str, key: str) -> None:
        """Forget a deleted thread."""
        self._used_threads.remove(tenant, key)
