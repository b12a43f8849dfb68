"""Kill a service after every possible number of writes of one request.

``python -m tests.serve.service.boundary_worker FOLDER NAME`` runs a scenario of ``SCENARIOS``. The
first process is killed before any write, the second one after one write, and so on, until a process
ends by itself. After each kill a new service continues the thread; its report is a line of JSON.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import shutil
import signal
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.sqlite.aio import AsyncSqliteStore

from tests.serve.service.helpers import plan
from tests.serve.service.in_process import service_client

QUICK_REQUEST = plan("s1 = quick(); s2 = quick(a=s1.value); s3 = quick(a=s2.value)")
ASKING_REQUEST = plan("s1 = quick(); s2 = twice(a=s1.value); s3 = quick(a=s2.value)")
KEY = {"Idempotency-Key": '"8e03978e-40d5-43dd-bc93-6894a57f9324"'}
#: Ways to continue a thread: resume it, or send the same request again.
CONTINUATIONS = ("resume", "repeat")
Request = Callable[[httpx.AsyncClient], Awaitable[httpx.Response]]


async def do_nothing(client: httpx.AsyncClient) -> None:
    pass


async def ask_earlier(client: httpx.AsyncClient) -> None:
    assert (await client.post("/ask", json={"question": "before", "thread_id": "t"})).is_success


async def ask_waiting(client: httpx.AsyncClient) -> None:
    assert (await client.post("/ask", json={**ASKING_REQUEST, "thread_id": "t"})).status_code == 202


async def ask(client: httpx.AsyncClient) -> httpx.Response:
    return await client.post("/ask", json={**QUICK_REQUEST, "thread_id": "t"}, headers=KEY)


async def reply(client: httpx.AsyncClient) -> httpx.Response:
    """Reply to the first question of the thread, even if another question is open now."""
    first = (Path(os.environ["BOUNDARY_FOLDER"]) / "first").read_text()
    body = {"replies": {first: "red"}}
    return await client.post("/threads/t/resume", json=body, headers=KEY)


async def open_question(client: httpx.AsyncClient) -> str:
    return str((await client.get("/threads/t")).json()["questions"][0]["id"])


#: The preparation of a thread, and the request during which the service is killed.
SCENARIOS: dict[str, tuple[Callable[[httpx.AsyncClient], Awaitable[None]], Request]] = {
    "first": (do_nothing, ask),
    "second": (ask_earlier, ask),
    "reply": (ask_waiting, reply),
}


def kill_after(writes: int) -> None:
    """Patch the stores so that this process kills itself after a number of writes."""
    remaining = [writes]

    def patch_method(kind: Any, name: str) -> None:
        write = getattr(kind, name)

        async def count_write(*arguments: Any, **options: Any) -> Any:
            if remaining[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            result = await write(*arguments, **options)
            remaining[0] -= 1
            if remaining[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        setattr(kind, name, count_write)

    for kind, name in (
        (AsyncSqliteSaver, "aput"),
        (AsyncSqliteSaver, "aput_writes"),
        (AsyncSqliteStore, "aput"),
    ):
        patch_method(kind, name)


async def prepare(folder: Path, name: str) -> None:
    async with service_client(folder, threads_file=folder / "threads.db") as client:
        await SCENARIOS[name][0](client)
        if name == "reply":
            (folder / "first").write_text(await open_question(client))


async def send_request(folder: Path, name: str) -> None:
    async with service_client(folder, threads_file=folder / "threads.db") as client:
        await SCENARIOS[name][1](client)


async def report_after_kill(folder: Path, name: str, how: str) -> dict[str, Any]:
    """Return the state of the thread in a new service, and the responses that continue it."""
    earlier_calls = logged_calls(folder)
    async with service_client(folder, threads_file=folder / "threads.db") as client:
        state = await client.get("/threads/t")
        if how == "resume":
            response = await client.post("/threads/t/resume", json={})
        else:
            response = await SCENARIOS[name][1](client)
        repeated = await SCENARIOS[name][1](client) if how == "repeat" else response
        reply_answer = None
        if response.status_code == 202:
            body = {"replies": {await open_question(client): "blue"}}
            reply_answer = (await client.post("/threads/t/resume", json=body)).json()
        later = await client.post("/ask", json={"question": "later", "thread_id": "t"})
    return {
        "thread": [state.status_code, state.json()],
        "response": [response.status_code, response.json()],
        "unchanged": (repeated.status_code, repeated.text) == (response.status_code, response.text),
        "final_answer": reply_answer,
        "later": later.status_code,
        "earlier_calls": earlier_calls,
        "calls": logged_calls(folder)[len(earlier_calls) :],
    }


def logged_calls(folder: Path) -> list[str]:
    log = folder / "log"
    return [line.split()[1] for line in log.read_text().splitlines()] if log.exists() else []


def run_in_child(work: Callable[[], Any]) -> int:
    """Run a function in a forked process, and return the exit code of the process."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        work()
    except BaseException:  # noqa: BLE001 - the child must never go on as its parent
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def import_service(folder: Path) -> None:
    """Import the modules of a service, and end its threads, since this process is forked later."""

    async def ask_once() -> None:
        async with service_client(folder) as client:
            assert (await ask(client)).is_success

    folder.mkdir()
    asyncio.run(ask_once())
    for thread in threading.enumerate():
        # Idle threads for calls stay, since a forked process starts its own.
        if thread is not threading.main_thread() and thread.name != "casewright-call":
            thread.join()


def main(root: Path, name: str) -> None:
    import_service(root / "warm")
    base = root / "base"
    base.mkdir()
    assert run_in_child(lambda: asyncio.run(prepare(base, name))) == 0
    for writes in itertools.count():
        folder = root / str(writes)
        if not run_killed(base, folder, name, writes):
            return
        for how in CONTINUATIONS:
            assert run_in_child(partial(print_report, folder, name, writes, how)) == 0


def run_killed(base: Path, folder: Path, name: str, writes: int) -> bool:
    """Kill a service after a number of writes; return false if it ended with fewer writes."""

    def kill() -> None:
        os.environ["BOUNDARY_FOLDER"] = str(shutil.copytree(base, folder))
        kill_after(writes)
        asyncio.run(send_request(folder, name))

    exit_code = run_in_child(kill)
    assert exit_code in (0, -signal.SIGKILL), exit_code
    return exit_code != 0


def print_report(folder: Path, name: str, writes: int, how: str) -> None:
    """Print the report of a new service on a copy of the folder."""
    copy = shutil.copytree(folder, folder.with_name(f"{writes}-{how}"))
    os.environ["BOUNDARY_FOLDER"] = str(copy)
    report = asyncio.run(report_after_kill(copy, name, how))
    print(json.dumps({"writes": writes, "how": how, **report}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
