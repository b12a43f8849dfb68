"""Threads in a PostgreSQL database, which several services share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from casewright.errors import DependencyError, InputError
from casewright.serve.service.problems import RefusedError
from casewright.serve.service.thread_locks import ThreadLocks, busy_thread

if TYPE_CHECKING:
    from psycopg import AsyncConnection

#: How long a connection may take, and a statement wait for a connection.
CONNECT_SECONDS = 5
#: How often it is looked whether the session that holds the locks is there still.
WATCH_SECONDS = 2.0
#: Connections for checkpoints.
CONNECTIONS = 8
#: The server gives up a session whose machine is gone after some ten seconds.
_SESSION = (
    "SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3"
)
#: Whoever makes the tables; others wait. Tried again and again: who waited inside a statement would
#: be waited for by the indexes that are made concurrently.
_MAKING = 5_011_223_344_556_677
log = logging.getLogger("casewright.service")


def check_threads_url(url: str) -> None:
    """Look whether threads can be kept in a database, and make their tables where there are none.

    Raises:
        DependencyError: LangGraph's Postgres checkpointer is not installed.
        InputError: The database does not answer, or lets nobody write.
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
        ) as opened:
            _alone_to_make(opened)
            PostgresSaver(opened).setup()
            PostgresStore(opened).setup()
    except psycopg.Error as error:
        # What libpq says of an address that it cannot read quotes it, a password too.
        said = "" if isinstance(error, psycopg.ProgrammingError) else f": {_line(error)}"
        raise InputError(
            f"The threads' database cannot be used{said}. Give postgresql://USER@HOST:PORT/NAME of "
            "a database in which that user may make tables."
        ) from None


def _alone_to_make(opened: Any) -> None:
    import time

    statement = "SELECT pg_try_advisory_lock(%s) AS got"
    while not opened.execute(statement, (_MAKING,)).fetchone()["got"]:
        time.sleep(0.1)


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200].rstrip(".?")


@asynccontextmanager
async def open_postgres(url: str) -> AsyncIterator[tuple[Any, PostgresLocks, Any]]:
    """Open checkpointer, locks and connections of what ``check_threads_url`` looked at."""
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from psycopg.rows import dict_row
    from psycopg_pool import AsyncConnectionPool

    settings = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    pool: Any = AsyncConnectionPool(
        url,
        kwargs={**settings, "connect_timeout": CONNECT_SECONDS},
        min_size=1,
        max_size=CONNECTIONS,
        timeout=CONNECT_SECONDS,
        # A database that was started anew has closed them.
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
    """The threads that are at work in any of the services that share a database.

    A lock is a session's: a service that is killed holds none. Where the session breaks, its locks
    are gone too, and the work on these threads is ended: another service may have begun it.
    """

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self._session: AsyncConnection[Any] | None = None
        self._opening = asyncio.Lock()
        self._watching: asyncio.Task[None] | None = None
        self._work: dict[str, asyncio.Timeout] = {}

    @asynccontextmanager
    async def alone(self, key: str | None) -> AsyncIterator[None]:
        """Have a thread alone, among all services.

        Raises:
            RefusedError: Another request has it, or the lock was lost.
        """
        async with super().alone(key):
            if key is None:
                yield
                return
            session, number = await self._opened(), _number(key)
            if not await _said(session, "SELECT pg_try_advisory_lock(%s)", number):
                raise busy_thread()
            try:
                async with asyncio.timeout(None) as work:
                    self._work[key] = work
                    yield
            except TimeoutError:
                if not work.expired():
                    raise
                detail = "The threads' database went away. Resume the thread in a moment."
                raise RefusedError(503, detail) from None
            finally:
                del self._work[key]
                # A session that broke has let go by itself.
                with suppress(Exception):
                    unlocking = _said(session, "SELECT pg_advisory_unlock(%s)", number)
                    await asyncio.shield(unlocking)

    async def held(self, key: str) -> bool:
        """Say whether a thread is at work in any service."""
        number = _number(key) % 2**64
        return await super().held(key) or await _said(
            await self._opened(),
            "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND "
            "database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND "
            "classid = %s::bigint::oid AND objid = %s::bigint::oid)",
            number >> 32,
            number % 2**32,
        )

    async def close(self) -> None:
        """End the session."""
        if self._watching is not None:
            self._watching.cancel()
        if self._session is not None:
            await self._session.close()

    async def _opened(self) -> AsyncConnection[Any]:
        from psycopg import AsyncConnection

        async with self._opening:
            if self._session is None:
                session = await AsyncConnection.connect(
                    self._url, autocommit=True, connect_timeout=CONNECT_SECONDS
                )
                await session.execute(_SESSION)
                self._session = session
                self._watching = asyncio.ensure_future(self._watch(session))
            return self._session

    async def _watch(self, session: AsyncConnection[Any]) -> None:
        """Wait for the session's end, and end the work that its locks were for."""
        try:
            while True:
                await asyncio.sleep(WATCH_SECONDS)
                async with asyncio.timeout(CONNECT_SECONDS):
                    await session.execute("SELECT 1")
        except Exception as error:  # noqa: BLE001 - whatever it is, the locks may be gone
            log.error("The session of the threads' locks broke: %s", _line(error))
            self._session = None
            now = asyncio.get_running_loop().time()
            for work in list(self._work.values()):
                work.reschedule(now)
            with suppress(Exception):
                await session.close()


async def _said(session: AsyncConnection[Any], statement: Any, *values: int) -> bool:
    row = await (await session.execute(statement, values)).fetchone()
    return bool(row and row[0])


def _number(key: str) -> int:
    """Return the lock's number of a thread's key, a digest in hexadecimal: 64 bits with a sign."""
    return int.from_bytes(bytes.fromhex(key)[:8], "big", signed=True)
