"""Threads in files and databases: their locks between services, and their deletion."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base.id import uuid6

from casewright.errors import InputError
from casewright.graph import ExtractiveGenerator
from casewright.serve.service.app import create_app
from casewright.serve.service.checkpoints import ThreadStorage, lock_threads, open_checkpoints
from casewright.serve.service.models import AskBody, ResumeBody
from casewright.serve.service.options import Parts, ServiceOptions
from casewright.serve.service.postgres import check_threads_url
from casewright.serve.service.problems import RefusedError
from casewright.serve.service.retirement import first_id_after, retire
from casewright.serve.service.routes import state_of
from casewright.serve.service.runs import Runs, Waiting
from casewright.tools import Toolbox
from tests.serve.service.server_process import QuestionPlanner, tools
from tests.support.postgres import database, own_database

TENANT = "acme"
STORAGES = pytest.mark.parametrize("storage", ["file", "database"])


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with database() as url:
        yield url


@pytest.fixture
def options(storage: str, tmp_path: Path, request: pytest.FixtureRequest) -> ServiceOptions:
    if storage == "file":
        return ServiceOptions(threads_file=tmp_path / "threads.db")
    name = f"own_{abs(hash(tmp_path))}"
    return ServiceOptions(threads_url=own_database(request.getfixturevalue("url"), name))


def make_parts(folder: Path) -> Parts:
    toolbox = Toolbox(tools(folder / "log"))
    return Parts("tests", toolbox, QuestionPlanner(), ExtractiveGenerator())


@asynccontextmanager
async def open_runs(
    folder: Path, options: ServiceOptions
) -> AsyncIterator[tuple[Runs, ThreadStorage]]:
    """Yield a service's runs over the tests' tools, without routes, and the storage of threads."""
    async with open_checkpoints(options) as threads:
        parts = make_parts(folder)
        runs = Runs(parts, options, threads.saver, None, threads.locks, threads.store)
        try:
            yield runs, threads
        finally:
            runs.close()


def ask_body(thread: str, plan: str) -> AskBody:
    return AskBody(question=f"plan: {plan}", scope={}, thread_id=thread)


async def status_of(runs: Runs, thread: str) -> str:
    state = await state_of(runs, thread, runs.thread_key(thread, TENANT))
    return str(state["status"])


async def wait_until(condition: Callable[[], Any], seconds: float = 20.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.02)


@STORAGES
def test_old_answered_threads_are_deleted_and_waiting_or_resumable_ones_stay(
    tmp_path: Path, options: ServiceOptions
) -> None:
    async def scenario() -> None:
        async with open_runs(tmp_path, options) as (runs, threads):
            assert threads.find_older is not None
            await runs.ask(ask_body("answered", "s1 = quick()"), TENANT)
            assert isinstance(await runs.ask(ask_body("waits", "s1 = asks()"), TENANT), Waiting)
            with suppress(TimeoutError):
                async with asyncio.timeout(0.5):
                    await runs.ask(ask_body("interrupted", "s1 = slow(b=9)"), TENANT)
            running = asyncio.ensure_future(runs.ask(ask_body("works", "s1 = slow(b=2)"), TENANT))
            await wait_until(lambda: len(runs.locks.locked_keys) == 1)
            now = datetime.now(UTC)
            assert await retire(runs, threads.find_older, now - timedelta(hours=1)) == 0
            assert await retire(runs, threads.find_older, now + timedelta(minutes=1)) == 1
            with pytest.raises(RefusedError, match="no such thread"):
                await status_of(runs, "answered")
            assert await status_of(runs, "waits") == "waiting"
            assert await status_of(runs, "interrupted") == "interrupted"
            await running
            assert await retire(runs, threads.find_older, now + timedelta(minutes=1)) == 1

    with lock_threads(options):
        asyncio.run(scenario())


def test_checkpoint_ids_are_ordered_by_time() -> None:
    now = datetime.now(UTC)
    before, after = (
        first_id_after(now - timedelta(seconds=1)),
        first_id_after(now + timedelta(seconds=1)),
    )
    assert before < str(uuid6(clock_seq=0)) < after


def test_file_of_threads_can_be_used_by_only_one_service(tmp_path: Path) -> None:
    options = ServiceOptions(threads_file=tmp_path / "threads.db")
    message = "Another service has the threads' file"
    with lock_threads(options), pytest.raises(InputError, match=message):
        create_app(make_parts(tmp_path), options)
    with lock_threads(options):
        pass
    assert {file.stat().st_mode & 0o077 for file in tmp_path.glob("threads.db*")} == {0}


def test_running_thread_is_busy_for_all_services_and_another_service_resumes_it(
    tmp_path: Path, url: str
) -> None:
    options = ServiceOptions(threads_url=url)

    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            first, _ = await stack.enter_async_context(open_runs(tmp_path, options))
            second, _ = await stack.enter_async_context(open_runs(tmp_path, options))
            plan = "s1 = quick(); s2 = slow(a=s1.value, b=1.5)"
            run = asyncio.ensure_future(first.ask(ask_body("one", plan), TENANT))
            log = tmp_path / "log"
            await wait_until(lambda: log.exists() and "slow" in log.read_text())
            assert await status_of(second, "one") == "running"
            for request in (
                second.resume("one", ResumeBody(scope={}), TENANT),
                second.ask(ask_body("one", "s1 = quick()"), TENANT),
                second.forget("one", TENANT),
            ):
                with pytest.raises(RefusedError, match="busy"):
                    await request
            run.cancel()
            await asyncio.wait({run})
            assert await status_of(second, "one") == "interrupted"
            answer: Any = await second.resume("one", ResumeBody(scope={}), TENANT)
            assert [step["status"] for step in answer["steps"]] == ["done", "done"]
            assert log.read_text().count("quick") == 1
            assert await status_of(first, "one") == "answered"

    with lock_threads(options):
        asyncio.run(scenario())


def test_run_whose_database_lock_is_lost_ends_and_can_be_resumed(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    monkeypatch.setattr("casewright.serve.service.postgres.WATCH_SECONDS", 0.1)
    options = ServiceOptions(threads_url=url)

    async def scenario() -> None:
        async with open_runs(tmp_path, options) as (runs, _):
            run = asyncio.ensure_future(runs.ask(ask_body("lost", "s1 = slow(b=1.5)"), TENANT))
            await wait_until(lambda: "slow" in (tmp_path / "log").read_text())
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'"
                )
            with pytest.raises(RefusedError, match="was lost") as raised:
                await run
            assert raised.value.status == 503
            assert await status_of(runs, "lost") == "interrupted"
            await runs.resume("lost", ResumeBody(scope={}), TENANT)
            assert await status_of(runs, "lost") == "answered"

    (tmp_path / "log").touch()
    with lock_threads(options):
        asyncio.run(scenario())


def test_services_that_start_simultaneously_create_the_tables_without_error(url: str) -> None:
    fresh = own_database(url, "fresh")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(check_threads_url, [fresh] * 4))


@pytest.mark.parametrize(
    "invalid_url",
    ["postgresql://me:hunter22@127.0.0.1:1/x", "postgresql://me:hunter22@[::1/x", "postgres://%zz"],
)
def test_error_of_an_unusable_database_contains_no_password(invalid_url: str) -> None:
    pytest.importorskip("psycopg_pool")
    with pytest.raises(InputError, match="cannot be used") as raised:
        lock_threads(ServiceOptions(threads_url=invalid_url))
    assert "hunter22" not in str(raised.value)
    assert "\n" not in str(raised.value)
