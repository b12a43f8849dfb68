"""A real server in a process of its own, and real clients, for the tests of the service."""

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
#: Forks a process that has imported the service's modules, since imports take four seconds.
FORK_CONTEXT = multiprocessing.get_context("forkserver")
FORK_CONTEXT.set_forkserver_preload([server_process.__name__, "langserve", "qdrant_client"])


class ForkedProcess:
    """A forked process with the methods of ``Popen`` that the tests use."""

    def __init__(self, process: Any) -> None:
        self._process = process
        self.pid: int = process.pid
        self.kill = process.kill

    def poll(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, signal_number: int) -> None:
        os.kill(self.pid, signal_number)

    def wait(self, timeout: float | None = None) -> int | None:
        self._process.join(timeout)
        return self._process.exitcode


@dataclass
class Served:
    """A running service."""

    url: str
    process: subprocess.Popen[str] | ForkedProcess
    log: Path

    def client(self, token: str | None = ACME, **options: Any) -> httpx.Client:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(base_url=self.url, headers=headers, timeout=30, **options)

    def lines(self) -> list[str]:
        """Return the lines of the tools' log: event, step, tenant and process."""
        return self.log.read_text().splitlines() if self.log.exists() else []

    def count_events(self, event: str) -> int:
        return sum(line.startswith(f"{event} ") for line in self.lines())

    def stop(self, signal_number: signal.Signals = signal.SIGTERM) -> int | None:
        self.process.send_signal(signal_number)
        return self.process.wait(30)


@contextmanager
def served(folder: Path, **options: Any) -> Iterator[Served]:
    """Yield a service with the tests' tools, which is killed when the context ends."""
    errors = _create_error_file(folder)
    variables = {**os.environ, "LOG": str(folder / "log")}
    file_limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    arguments = ({"tokens": TOKENS, **options}, variables, file_limits, errors)
    process = FORK_CONTEXT.Process(target=server_process.serve_forked, args=arguments)
    process.start()
    with _serving(ForkedProcess(process), errors) as server:
        yield server


@contextmanager
def started(command: list[str], folder: Path, **environment: str) -> Iterator[Served]:
    """Yield the service that a command starts, which is killed when the context ends."""
    errors = _create_error_file(folder)
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


def _create_error_file(folder: Path) -> Path:
    file = folder / f"stderr-{time.monotonic_ns()}"
    file.touch()
    return file


@contextmanager
def _serving(process: subprocess.Popen[str] | ForkedProcess, errors: Path) -> Iterator[Served]:
    try:
        match = until(lambda: re.search(r"http://\S+", errors.read_text()), 90, process)
        server = Served(match[0], process, errors.with_name("log"))
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
    """Return a question for which the tests' planner writes this plan."""
    return {"question": f"please plan: {text}"}


def post_reply(client: httpx.Client, thread: str, reply: object, **more: object) -> httpx.Response:
    """Reply to the first of a thread's open questions."""
    question = client.get(f"/threads/{thread}").json()["questions"][0]["id"]
    return client.post(f"/threads/{thread}/resume", json={"replies": {question: reply}, **more})


def open_questions(body: dict[str, Any]) -> list[Any]:
    """Return the questions that wait for a reply."""
    return [question["question"] for question in body["questions"]]


def events_of(response: httpx.Response) -> list[tuple[str, Any]]:
    from httpx_sse import EventSource

    return [(event.event, json.loads(event.data)) for event in EventSource(response).iter_sse()]
