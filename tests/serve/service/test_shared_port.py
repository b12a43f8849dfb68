"""Several services share a port and a database of threads."""

from __future__ import annotations

import os
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from casewright.errors import InputError
from casewright.serve.service.server import listening_socket
from tests.serve.service.helpers import Served, plan, served
from tests.support.postgres import database
from tests.support.waiting import until


def test_port_is_shared_only_by_sockets_opened_with_share() -> None:
    with listening_socket("127.0.0.1", 0, share=True) as first:
        port = first.getsockname()[1]
        with listening_socket("127.0.0.1", port, share=True) as second:
            assert second.getsockname()[1] == port
        with pytest.raises(InputError, match="is taken"):
            listening_socket("127.0.0.1", port)


def send_request(server: Served, method: str, path: str, **options: Any) -> httpx.Response:
    """Send a request over a new connection, which the system gives to any of the services."""
    with server.client() as client:
        return client.request(method, path, **options)


def test_three_services_share_a_port_and_resume_runs_of_a_killed_one(tmp_path: Path) -> None:
    with ExitStack() as stack:
        url = stack.enter_context(database())
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        server, *others = [
            stack.enter_context(served(tmp_path, threads_url=url, port=port)) for _ in range(3)
        ]
        processes = {service.process.pid: service.process for service in (server, *others)}
        pool = stack.enter_context(ThreadPoolExecutor(1))
        question = plan("s1 = quick(); s2 = slow(a=s1.value, b=6); s3 = quick(a=s2.value)")
        body = {**question, "thread_id": "killed"}

        def thread_state() -> Any:
            return send_request(server, "GET", "/threads/killed").json()

        request = pool.submit(send_request, server, "POST", "/ask", json=body)
        until(lambda: server.count_events("slow") == 1)
        until(lambda: thread_state()["steps"])
        # Every service reports that one of them runs the thread.
        assert [thread_state()["status"] for _ in range(12)] == ["running"] * 12
        posts = [send_request(server, "POST", "/threads/killed/resume", json={}) for _ in range(6)]
        assert [response.status_code for response in posts] == [409] * 6

        killed = int(server.lines()[0].split()[-1])
        os.kill(killed, signal.SIGKILL)
        processes[killed].wait(10)
        assert isinstance(request.exception(), httpx.TransportError)
        until(lambda: thread_state()["status"] == "interrupted")
        answer = send_request(server, "POST", "/threads/killed/resume", json={}).json()
        assert [step["status"] for step in answer["steps"]] == ["done"] * 3
        calls = [line.split() for line in server.lines() if not line.startswith("slept")]
        assert [line[:2] for line in calls] == [
            ["quick", "s1"],
            ["slow", "s2"],
            ["slow", "s2"],
            ["quick", "s3"],
        ], "a finished step was repeated"
        assert [int(line[-1]) == killed for line in calls] == [True, True, False, False]
        assert {int(line[-1]) for line in calls} <= processes.keys()
