"""Stores threads in a PostgreSQL database that several services share."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from casewright.errors import DependencyError, InputError
from casewright.serve.service.problems import RefusedError
from casewright.serve.service.thread_locks import ThreadLocks, busy_thread_error

if TYPE_CHECKING:
    from psycopg import AsyncConnection

#: Timeout for opening a connection, waiting for one in the pool, and checking the locks' session.
CONNECT_SECONDS = 5
#: Interval between checks of the database session that holds the threads' locks.
WATCH_SECONDS = 2.0
#: Maximum number of connections for checkpoints.
MAX_CONNECTIONS = 8
#: With these settings, the server ends a session about ten seconds after the client is lost.
_SET_KEEPALIVES = (
    "SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3"
)
#: Number of the advisory lock that a service holds while it creates tables. Other services poll
#: the lock, since a statement that waits for the lock would block CREATE INDEX CONCURRENTLY.
_TABLES_LOCK = 5_011_223_344_556_677
log = logging.getLogger("casewright.service")


def check_threads_url(url: str) -> None:
    """Create the missing tables of a database, and so check that the database can store threads.

    Raises:
        DependencyError: LangGraph's Postgres checkpointer is not installed.
        InputError: The database does not answer, or is not writable.
    """
    try:
        import psycopg
        import psycopg_pool  # noqa: F401
        from langgraph.checkpoint.postgres import PostgresSaver
        from langgraph.store.postgres import PostgresStore
    except ImportError as error:
        raise DependencyError(
            "Threads in PostgreSQL need LangGraph's Postgres checkpointer. Run: "
            "pip install 'casewright[postgres]'"
        ) from error
    from psycopg.rows import dict_row

    try:
        with psycopg.connect(
            url, autocommit=True, connect_timeout=CONNECT_SECONDS, row_factory=dict_row
        ) as connection:
            cursor: Any = connection.cursor()
            try_lock = "SELECT pg_try_advisory_lock(%s) AS locked"
            while not cursor.execute(try_lock, (_TABLES_LOCK,)).fetchone()["locked"]:
                time.sleep(0.1)
            PostgresSaver(connection).setup()
            PostgresStore(connection).setup()
    except psycopg.Error as error:
        # libpq's message on an invalid address quotes the password.
        reason = "" if isinstance(error, psycopg.ProgrammingError) else f": {_short_message(error)}"
        raise InputError(
            f"The threads' database cannot be used{reason}. Give postgresql://USER@HOST:PORT/NAME "
            "of a database in which that user may make tables."
        ) from None


def _short_message(error: BaseException) -> str:
    return " ".join(str(error).split())[:200].rstrip(".?")


@asynccontextmanager
async def open_postgres(url: str) -> AsyncIterator[tuple[Any, PostgresLocks, Any]]:
    """Open a database, and yield its checkpointer, locks and connection pool."""
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from psycopg.rows import dict_row
    from psycopg_pool import AsyncConnectionPool

    settings = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    pool: Any = AsyncConnectionPool(
        url,
        kwargs={**settings, "connect_timeout": CONNECT_SECONDS},
        min_size=1,
        max_size=MAX_CONNECTIONS,
        timeout=CONNECT_SECONDS,
        # A restart of the database closes connections; the check replaces them.
        check=AsyncConnectionPool.check_connection,
        open=False,
    )
    locks = PostgresLocks(url)
    async with pool:
        try:
            yield AsyncPostgresSaver(pool), locks, pool
        finally:
            await locks.close()


class PostgresLocks(ThreadLocks):
    """The locks of threads among all services that share a database.

    The locks belong to a database session, so that a killed service holds none. If the session
    breaks, the locks are lost, and work on the locked threads is cancelled, since other services
    may lock these threads.
    """

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self._session: AsyncConnection[Any] | None = None
        self._opening_lock = asyncio.Lock()
        self._watch_task: asyncio.Task[None] | None = None
        # By thread key, the timeout of the work on the thread; ``_watch`` makes timeouts expire.
        self._timeouts: dict[str, asyncio.Timeout] = {}

    @asynccontextmanager
    async def lock(self, key: str | None) -> AsyncIterator[None]:
        """Lock a thread in all services; raise ``RefusedError`` if it is busy or the lock fails."""
        async with super().lock(key):
            if key is None:
                yield
                return
            session, lock_number = await self._open_session(), _lock_number(key)
            if not await _query_bool(session, "SELECT pg_try_advisory_lock(%s)", lock_number):
                raise busy_thread_error()
            try:
                async with asyncio.timeout(None) as timeout:
                    self._timeouts[key] = timeout
                    yield
            except TimeoutError:
                if not timeout.expired():
                    raise
                detail = "The threads' database was lost. Resume the thread in a moment."
                raise RefusedError(503, detail) from None
            finally:
                del self._timeouts[key]
                # A broken session holds no locks, so its error is ignored.
                with suppress(Exception):
                    unlocking = _query_bool(session, "SELECT pg_advisory_unlock(%s)", lock_number)
                    await asyncio.shield(unlocking)

    async def is_locked(self, key: str) -> bool:
        """Return ``True`` if a thread is locked in any service."""
        # ``pg_locks`` shows the number as two halves of 32 bits.
        lock_number = _lock_number(key) % 2**64
        return await super().is_locked(key) or await _query_bool(
            await self._open_session(),
            "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND "
            "database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND "
            "classid = %s::bigint::oid AND objid = %s::bigint::oid)",
            lock_number >> 32,
            lock_number % 2**32,
        )

    async def close(self) -> None:
        """End the session."""
        if self._watch_task is not None:
            self._watch_task.cancel()
        if self._session is not None:
            await self._session.close()

    async def _open_session(self) -> AsyncConnection[Any]:
        from psycopg import AsyncConnection

        async with self._opening_lock:
            if self._session is None:
                session = await AsyncConnection.connect(
                    self._url, autocommit=True, connect_timeout=CONNECT_SECONDS
                )
                await session.execute(_SET_KEEPALIVES)
                self._session = session
                self._watch_task = asyncio.ensure_future(self._watch(session))
            return self._session

    async def _watch(self, session: AsyncConnection[Any]) -> None:
        """Wait until the session breaks, then cancel the work on the locked threads."""
        try:
            while True:
                await asyncio.sleep(WATCH_SECONDS)
                async with asyncio.timeout(CONNECT_SECONDS):
                    await session.execute("SELECT 1")
        except Exception as error:  # noqa: BLE001 - after any error, locks may be lost
            log.error("The session of the threads' locks broke: %s", _short_message(error))
            self._session = None
            now = asyncio.get_running_loop().time()
            for timeout in list(self._timeouts.values()):
                timeout.reschedule(now)
            with suppress(Exception):
                await session.close()


async def _query_bool(session: AsyncConnection[Any], statement: Any, *values: int) -> bool:
    row = await (await session.execute(statement, values)).fetchone()
    return bool(row and row[0])


def _lock_number(key: str) -> int:
    """Return the signed 64-bit number of a thread's lock from the thread's hexadecimal key."""
    return int.from_bytes(bytes.fromhex(key)[:8], "big", signed=True)
