"""What the service's tests share: a real server in a process of its own, and real clients."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import resource
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.serve.service import server_process
from tests.support.waiting import until

ROOT = Path(__file__).parents[3]
ACME, OTHER = "acme-token-0123456789", "other-token-0123456789"
TOKENS = {ACME: "acme", OTHER: "other"}
QUICK = "how much memory is on my phone"
#: Forks of a process that has imported what the service does, which takes four seconds.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload([server_process.__name__, "langserve", "qdrant_client"])


class Forked:
    """A process that was forked, by the names that ``Popen`` has."""

    def __init__(self, process: Any) -> None:
        self._process = process
        self.pid: int = process.pid
        self.kill = process.kill

    def poll(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, how: int) -> None:
        os.kill(self.pid, how)

    def wait(self, timeout: float | None = None) -> int | None:
        self._process.join(timeout)
        return self._process.exitcode


@dataclass
class Served:
    """A running service."""

    url: str
    process: subprocess.Popen[str] | Forked
    log: Path

    def client(self, token: str | None = ACME, **more: Any) -> httpx.Client:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(base_url=self.url, headers=headers, timeout=30, **more)

    def lines(self) -> list[str]:
        """What the tools did so far."""
        return self.log.read_text().splitlines() if self.log.exists() else []

    def did(self, what: str) -> int:
        return sum(line.startswith(f"{what} ") for line in self.lines())

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int | None:
        self.process.send_signal(how)
        return self.process.wait(30)


@contextmanager
def served(folder: Path, **options: Any) -> Iterator[Served]:
    """Serve the tests' tools while the context lasts."""
    errors = _errors(folder)
    variables = {**os.environ, "LOG": str(folder / "log")}
    inherited = (variables, resource.getrlimit(resource.RLIMIT_NOFILE), errors)
    given = {"tokens": TOKENS, **options}
    process = FORKS.Process(target=server_process.forked, args=(given, *inherited))
    process.start()
    with _serving(Forked(process), errors) as server:
        yield server


@contextmanager
def started(command: list[str], folder: Path, **environment: str) -> Iterator[Served]:
    """Run a command that serves, and see that it is gone at the end."""
    errors = _errors(folder)
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
    with _serving(process, errors) as server:
        yield server


def _errors(folder: Path) -> Path:
    file = folder / f"stderr-{time.monotonic_ns()}"
    file.touch()
    return file


@contextmanager
def _serving(process: subprocess.Popen[str] | Forked, errors: Path) -> Iterator[Served]:
    try:
        found = until(lambda: re.search(r"http://\S+", errors.read_text()), 90, process)
        server = Served(found[0], process, errors.with_name("log"))
        until(lambda: _healthy(server), 30, process)
        yield server
    finally:
        process.kill()
        process.wait()


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


def open_questions(body: dict[str, Any]) -> list[Any]:
    """What tools wait to be told."""
    return [one["question"] for one in body["questions"]]


def events_of(reply: httpx.Response) -> list[tuple[str, Any]]:
    from httpx_sse import EventSource

    return [(event.event, json.loads(event.data)) for event in EventSource(reply).iter_sse()]
