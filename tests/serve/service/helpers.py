"""What the service's tests share: a real server in a process of its own, and real clients."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).parents[3]
ACME, OTHER = "acme-token-0123456789", "other-token-0123456789"
TOKENS = {ACME: "acme", OTHER: "other"}
QUICK = "how much memory is on my phone"


@dataclass
class Served:
    """A running service."""

    url: str
    process: subprocess.Popen[str]
    log: Path

    def client(self, token: str | None = ACME, **more: Any) -> httpx.Client:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(base_url=self.url, headers=headers, timeout=30, **more)

    def lines(self) -> list[str]:
        """What the tools did so far."""
        return self.log.read_text().splitlines() if self.log.exists() else []

    def did(self, what: str) -> int:
        return sum(line.startswith(f"{what} ") for line in self.lines())

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        return self.process.wait(30)


@contextmanager
def served(folder: Path, **options: Any) -> Iterator[Served]:
    """Serve the tests' tools while the context lasts."""
    given = {"tokens": TOKENS, **options}
    command = [sys.executable, "-m", "tests.serve.service.server_process", json.dumps(given)]
    with started(command, folder, LOG=str(folder / "log")) as server:
        yield server


@contextmanager
def started(command: list[str], folder: Path, **environment: str) -> Iterator[Served]:
    """Run a command that serves, and see that it is gone at the end."""
    errors = folder / f"stderr-{time.monotonic_ns()}"
    with errors.open("w") as err:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=err,
            text=True,
            cwd=ROOT,
            env={**os.environ, **environment},
        )
    try:
        found = until(lambda: re.search(r"http://\S+", errors.read_text()), 90, process)
        server = Served(found[0], process, folder / "log")
        until(lambda: _healthy(server), 30, process)
        yield server
    finally:
        process.kill()
        process.wait()


def until(ready: Callable[[], Any], seconds: float = 30, process: Any = None) -> Any:
    """Wait until something is so, and return it."""
    deadline = time.monotonic() + seconds
    while not (found := ready()):
        assert process is None or process.poll() is None, "the service ended"
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.02)
    return found


def _healthy(server: Served) -> bool:
    try:
        return httpx.get(f"{server.url}/healthz").status_code == 200
    except httpx.TransportError:
        return False


def plan(text: str) -> dict[str, str]:
    """A question for which the tests' planner writes this plan."""
    return {"question": f"please plan: {text}"}


def replied(client: httpx.Client, thread: str, reply: object, **more: object) -> httpx.Response:
    """Reply to the first of a thread's open questions."""
    to = client.get(f"/threads/{thread}").json()["questions"][0]["id"]
    return client.post(f"/threads/{thread}/resume", json={"replies": {to: reply}, **more})


def asked_of(body: dict[str, Any]) -> list[Any]:
    """What tools wait to be told."""
    return [one["question"] for one in body["questions"]]


def events_of(reply: httpx.Response) -> list[tuple[str, Any]]:
    from httpx_sse import EventSource

    return [(event.event, json.loads(event.data)) for event in EventSource(reply).iter_sse()]
