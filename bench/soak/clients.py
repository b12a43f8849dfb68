"""A service under many clients, half of whom go before they are answered, and its sudden ends."""

from __future__ import annotations

import asyncio
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from casewright.bench.soak.counts import Bounds, Counts
from casewright.errors import CasewrightError

CLIENTS = 64
#: What a client may be answered with: well, not well formed, not there, too much, too late.
FAIR = {200, 400, 404, 405, 409, 413, 415, 422, 429, 431, 503, 504}
#: A domain whose tools take a moment.
DOMAIN = '''\
import time

from casewright.domains import own_domain
from casewright.planner import AnnotatedQuery
from casewright.tools import Toolbox, tool_from_function


def find_machine(query: str) -> list[dict]:
    """Finds a machine."""
    time.sleep(0.01)
    return [{"machine_id": "M7", "name": query}]


def read_sensor(machine_id: str) -> str:
    """The latest temperature of a machine."""
    time.sleep(0.01)
    return f"{machine_id}: 61"


toolbox = Toolbox(
    [
        tool_from_function(find_machine, results=("machine_id", "name")),
        tool_from_function(read_sensor, sources={"machine_id": ("step", "context")}),
    ]
)
plan = 's1 = find_machine(query="mill")\\ns2 = read_sensor(machine_id=s1.machine_id)'
case = {"id": "1", "query": "how warm is the mill", "plan": plan}
domain = own_domain("plant", toolbox, [AnnotatedQuery.read(case)])
'''


def served_clients(bounds: Bounds, folder: Path) -> Counts:
    """Ask by 64 clients, kill the service, start it again: what was answered is still there."""
    counts = Counts("64 clients, and the service killed")
    ends = time.monotonic() + bounds.seconds
    (folder / "plant.py").write_text(DOMAIN)
    answered: dict[str, str] = {}
    for turn in bounds.trials(counts):
        rest = max(3.0, min(20.0, ends - time.monotonic()))
        with _served(folder) as (url, process):
            chance = random.Random(f"{bounds.seed}.{turn}")
            asyncio.run(_turn(url, process, rest, chance, answered, counts))
    with _served(folder) as (url, _):
        asyncio.run(_look(url, answered, counts))
    return counts


async def _look(url: str, answered: dict[str, str], counts: Counts) -> None:
    async with httpx.AsyncClient(base_url=url, timeout=90) as client:
        await _still_there(client, answered, counts)


@contextmanager
def _served(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    command = [sys.executable, "-P", "-m", "casewright", "serve", "--without-tokens", "--port", "0"]
    command += ["--domain", f"{folder / 'plant.py'}:domain", "--threads", str(folder / "t.db")]
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)
    try:
        for _ in range(1200):
            if found := re.search(r"Serving on (http://\S+)", log.read_text(errors="replace")):
                break
            time.sleep(0.1)
        else:
            raise CasewrightError(f"The service did not start: {log.read_text()[-400:]}")
        yield found[1], process
    finally:
        process.kill()
        process.wait()


async def _turn(
    url: str,
    process: subprocess.Popen[bytes],
    seconds: float,
    chance: random.Random,
    answered: dict[str, str],
    counts: Counts,
) -> None:
    """Look for what was answered before, ask, and end the service while it is being asked."""
    limits = httpx.Limits(max_connections=CLIENTS + 1)
    async with httpx.AsyncClient(base_url=url, timeout=90, limits=limits) as client:
        await _still_there(client, answered, counts)
        over = asyncio.Event()

        async def ask(number: int) -> None:
            own = random.Random(f"{chance.random()}{number}")
            while not over.is_set():
                await _one(client, own, answered, counts)

        asking = [asyncio.create_task(ask(number)) for number in range(CLIENTS)]
        await asyncio.sleep(seconds)
        async with httpx.AsyncClient(base_url=url, timeout=60) as other:
            reply = await other.get("/healthz")
        counts.add("sound" if reply.status_code == 200 else f"{reply.status_code}", "/healthz")
        process.kill()
        over.set()
        await asyncio.gather(*asking)


async def _one(
    client: httpx.AsyncClient, chance: random.Random, answered: dict[str, str], counts: Counts
) -> None:
    kind = chance.choice(("ask", "ask", "kept", "gone", "cut", "garbage"))
    body: dict[str, Any] = {"question": f"how warm is the lathe {chance.randrange(1000)}"}
    thread = f"t{chance.randrange(10**9)}"
    if kind == "kept":
        body["thread_id"] = thread
    try:
        if kind == "gone":
            await asyncio.wait_for(client.post("/ask", json=body), chance.uniform(0, 0.2))
        elif kind == "cut":
            async with client.stream("POST", "/ask/stream", json=body) as stream:
                async for _ in stream.aiter_lines():
                    if chance.random() < 0.3:
                        break
        elif kind == "garbage":
            sent = chance.choice((b"[" * 5000, b"{", chance.randbytes(300), b'{"question": ""}'))
            headers = {"Content-Type": "application/json"}
            counts.add(_fair(await client.post("/ask", content=sent, headers=headers)), kind)
            return
        else:
            reply = await client.post("/ask", json=body)
            if kind == "kept" and reply.status_code == 200:
                answered[thread] = reply.json()["text"]
            counts.add(_fair(reply), kind)
            return
    except (TimeoutError, httpx.TransportError):
        # It went by itself, or there was no place for it.
        pass
    counts.add("sound", kind)


async def _still_there(client: httpx.AsyncClient, answered: dict[str, str], counts: Counts) -> None:
    """Look whether threads that were answered before the service's end have their answers."""
    for thread in list(answered)[-200:]:
        reply = await client.get(f"/threads/{thread}")
        text = reply.json().get("answer", {}).get("text") if reply.status_code == 200 else None
        same = text == answered[thread]
        counts.lost += not same
        counts.add("sound" if same else f"{reply.status_code} {text!r}", f"thread {thread}")


def _fair(reply: httpx.Response) -> str:
    if reply.status_code == 200:
        return "sound"
    return "told" if reply.status_code in FAIR else f"{reply.status_code} {reply.text[:200]}"
