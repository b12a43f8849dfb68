"""A service that is killed after each write of a request, one after the other.

``python -m tests.serve.service.boundary_worker FOLDER NAME`` does it for one of ``SCENARIOS``:
process by process, the first is killed before any write, the next after one, until one ends. What a
service that is started anew then says, and does, is a line of JSON on stdout for each of them.
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

ASKED = {**plan("s1 = quick(); s2 = quick(a=s1.value); s3 = quick(a=s2.value)"), "thread_id": "t"}
ASKS = {**plan("s1 = quick(); s2 = twice(a=s1.value); s3 = quick(a=s2.value)"), "thread_id": "t"}
KEY = {"Idempotency-Key": '"8e03978e-40d5-43dd-bc93-6894a57f9324"'}
#: How a thread is gone on with: by its resumption, or by the same request once more.
WAYS = ("resume", "repeat")
Request = Callable[[httpx.AsyncClient], Awaitable[httpx.Response]]


async def nothing(client: httpx.AsyncClient) -> None:
    pass


async def earlier(client: httpx.AsyncClient) -> None:
    assert (await client.post("/ask", json={"question": "before", "thread_id": "t"})).is_success


async def waiting(client: httpx.AsyncClient) -> None:
    assert (await client.post("/ask", json=ASKS)).status_code == 202


async def ask(client: httpx.AsyncClient) -> httpx.Response:
    return await client.post("/ask", json=ASKED, headers=KEY)


async def reply(client: httpx.AsyncClient) -> httpx.Response:
    """Reply to the first question, whichever is open by now."""
    first = (Path(os.environ["BOUNDARY_FOLDER"]) / "first").read_text()
    body = {"replies": {first: "red"}}
    return await client.post("/threads/t/resume", json=body, headers=KEY)


async def open_question(client: httpx.AsyncClient) -> str:
    return str((await client.get("/threads/t")).json()["questions"][0]["id"])


#: What is there before, and the request that is killed.
SCENARIOS: dict[str, tuple[Callable[[httpx.AsyncClient], Awaitable[None]], Request]] = {
    "first": (nothing, ask),
    "second": (earlier, ask),
    "reply": (waiting, reply),
}


def killed_after(writes: int) -> None:
    """Have this process kill itself once so many writes are kept."""
    left = [writes]

    def counted(kind: Any, name: str) -> None:
        write = getattr(kind, name)

        async def counting(*given: Any, **more: Any) -> Any:
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            made = await write(*given, **more)
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return made

        setattr(kind, name, counting)

    for kind, name in (
        (AsyncSqliteSaver, "aput"),
        (AsyncSqliteSaver, "aput_writes"),
        (AsyncSqliteStore, "aput"),
    ):
        counted(kind, name)


async def before(folder: Path, name: str) -> None:
    async with service_client(folder, threads_file=folder / "threads.db") as client:
        await SCENARIOS[name][0](client)
        if name == "reply":
            (folder / "first").write_text(await open_question(client))


async def killed(folder: Path, name: str) -> None:
    async with service_client(folder, threads_file=folder / "threads.db") as client:
        await SCENARIOS[name][1](client)


async def afterwards(folder: Path, name: str, how: str) -> dict[str, Any]:
    """What a service says of the thread, then of its resumption or of the request once more."""
    begun = calls(folder)
    async with service_client(folder, threads_file=folder / "threads.db") as client:
        told = await client.get("/threads/t")
        if how == "resume":
            ended = await client.post("/threads/t/resume", json={})
        else:
            ended = await SCENARIOS[name][1](client)
        again = await SCENARIOS[name][1](client) if how == "repeat" else None
        last = None
        if ended.status_code == 202:
            body = {"replies": {await open_question(client): "blue"}}
            last = (await client.post("/threads/t/resume", json=body)).json()
        later = await client.post("/ask", json={"question": "later", "thread_id": "t"})
    return {
        "told": [told.status_code, told.json()],
        "ended": [ended.status_code, ended.json()],
        "same": again is None or (again.status_code, again.text) == (ended.status_code, ended.text),
        "last": last,
        "later": later.status_code,
        "begun": begun,
        "calls": calls(folder)[len(begun) :],
    }


def calls(folder: Path) -> list[str]:
    log = folder / "log"
    return [line.split()[1] for line in log.read_text().splitlines()] if log.exists() else []


def in_child(work: Callable[[], Any]) -> int:
    """Run something in a process of its own, forked before anything ran; returns how it ended."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        work()
    except BaseException:  # noqa: BLE001 - the child must never go on as its parent
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def warm(folder: Path) -> None:
    """Import what a service imports; no thread of it may be left when this process is forked."""

    async def once() -> None:
        async with service_client(folder) as client:
            assert (await ask(client)).is_success

    folder.mkdir()
    asyncio.run(once())
    for thread in threading.enumerate():
        # Idle threads for calls stay; a forked process starts its own.
        if thread is not threading.main_thread() and thread.name != "casewright-call":
            thread.join()


def main(root: Path, name: str) -> None:
    warm(root / "warm")
    base = root / "base"
    base.mkdir()
    assert in_child(lambda: asyncio.run(before(base, name))) == 0
    for writes in itertools.count():
        folder = root / str(writes)
        if not killed_in(base, folder, name, writes):
            return
        for how in WAYS:
            assert in_child(partial(look, folder, name, writes, how)) == 0


def killed_in(base: Path, folder: Path, name: str, writes: int) -> bool:
    """Kill a service after so many writes; says whether there were as many."""

    def kill() -> None:
        os.environ["BOUNDARY_FOLDER"] = str(shutil.copytree(base, folder))
        killed_after(writes)
        asyncio.run(killed(folder, name))

    ended = in_child(kill)
    assert ended in (0, -signal.SIGKILL), ended
    return ended != 0


def look(folder: Path, name: str, writes: int, how: str) -> None:
    """Print what a new service makes of what is left."""
    copy = shutil.copytree(folder, folder.with_name(f"{writes}-{how}"))
    os.environ["BOUNDARY_FOLDER"] = str(copy)
    found = asyncio.run(afterwards(copy, name, how))
    print(json.dumps({"writes": writes, "how": how, **found}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
