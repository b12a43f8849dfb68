"""Trials that kill a service while many clients send requests; some clients disconnect early."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import httpx

from casewright.bench.harness import serving
from casewright_soak.trials import Bounds, Counts

CLIENT_COUNT = 64
#: Number of the latest answers in threads that are compared after a kill.
COMPARED_COUNT = 200
#: The status codes that a service under load may return; other codes, such as 500, are faults.
ALLOWED_CODES = {200, 400, 404, 405, 409, 413, 415, 422, 429, 431, 503, 504}
#: The text of a Python file with a domain whose tools are slow.
DOMAIN_CODE = '''\
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


def kills_with_clients(bounds: Bounds, folder: Path) -> Counts:
    """Let 64 clients ask, kill the service and restart it; no answer in a thread may be lost."""
    counts = Counts("64 clients, and the service killed")
    deadline = time.monotonic() + bounds.seconds
    (folder / "plant.py").write_text(DOMAIN_CODE)
    serve_arguments = (f"{folder / 'plant.py'}:domain", "--threads", str(folder / "t.db"))
    clients = _Clients(counts)
    for number in bounds.trials(counts):
        load_seconds = max(3.0, min(20.0, deadline - time.monotonic()))
        with serving(*serve_arguments, may_end=True) as (url, pid):
            rng = random.Random(f"{bounds.seed}.{number}")
            asyncio.run(clients.ask_and_kill(url, pid, load_seconds, rng))
    with serving(*serve_arguments) as (url, _):
        asyncio.run(clients.compare_threads(url))
    return counts


class _Clients:
    """Concurrent clients of a service, and the answers that they have received."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._answer_by_thread: dict[str, str] = {}

    async def compare_threads(self, url: str) -> None:
        """Compare the answers in the latest threads with the answers that clients received."""
        async with httpx.AsyncClient(base_url=url, timeout=90) as client:
            for thread, received in list(self._answer_by_thread.items())[-COMPARED_COUNT:]:
                reply = await client.get(f"/threads/{thread}")
                is_found = reply.status_code == 200
                stored = reply.json().get("answer", {}).get("text") if is_found else None
                self._counts.lost += stored != received
                outcome = "sound" if stored == received else f"{reply.status_code} {stored!r}"
                self._counts.add(outcome, f"thread {thread}")

    async def ask_and_kill(self, url: str, pid: int, seconds: float, rng: random.Random) -> None:
        """Compare the threads, send requests for some seconds, and kill the service meanwhile."""
        await self.compare_threads(url)
        limits = httpx.Limits(max_connections=CLIENT_COUNT + 1)
        async with httpx.AsyncClient(base_url=url, timeout=90, limits=limits) as client:
            killed = asyncio.Event()

            async def ask(number: int) -> None:
                client_rng = random.Random(f"{rng.random()}{number}")
                while not killed.is_set():
                    kind = client_rng.choice(("ask", "ask", "thread", "leave", "cut", "invalid"))
                    try:
                        outcome = await self._request(client, kind, client_rng)
                    except (TimeoutError, httpx.TransportError):
                        # The client disconnected, or the service was killed.
                        outcome = "sound"
                    self._counts.add(outcome, kind)

            tasks = [asyncio.create_task(ask(number)) for number in range(CLIENT_COUNT)]
            await asyncio.sleep(seconds)
            async with httpx.AsyncClient(base_url=url, timeout=60) as monitor:
                code = (await monitor.get("/healthz")).status_code
            self._counts.add("sound" if code == 200 else f"{code}", "/healthz")
            os.kill(pid, signal.SIGKILL)
            killed.set()
            await asyncio.gather(*tasks)

    async def _request(self, client: httpx.AsyncClient, kind: str, rng: random.Random) -> str:
        """Send a request of a kind, and return an outcome for ``Counts.add``.

        ``ask`` waits for an answer, and ``thread`` for an answer that a thread stores. ``leave``
        disconnects before the answer, ``cut`` during the stream. ``invalid`` sends an invalid body.
        """
        body: dict[str, Any] = {"question": f"how warm is the lathe {rng.randrange(1000)}"}
        if kind == "leave":
            await asyncio.wait_for(client.post("/ask", json=body), rng.uniform(0, 0.2))
            return "sound"
        if kind == "cut":
            async with client.stream("POST", "/ask/stream", json=body) as stream:
                async for _ in stream.aiter_lines():
                    if rng.random() < 0.3:
                        break
            return "sound"
        if kind == "invalid":
            content = rng.choice((b"[" * 5000, b"{", rng.randbytes(300), b'{"question": ""}'))
            headers = {"Content-Type": "application/json"}
            reply = await client.post("/ask", content=content, headers=headers)
        else:
            if kind == "thread":
                body["thread_id"] = f"t{rng.randrange(10**9)}"
            reply = await client.post("/ask", json=body)
            if kind == "thread" and reply.status_code == 200:
                self._answer_by_thread[body["thread_id"]] = reply.json()["text"]
        if reply.status_code == 200:
            return "sound"
        is_allowed = reply.status_code in ALLOWED_CODES
        return "told" if is_allowed else f"{reply.status_code} {reply.text[:200]}"
