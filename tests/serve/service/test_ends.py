"""The service finishes running requests after SIGTERM, and resumes runs after SIGKILL."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.serve.service.helpers import OTHER, QUICK, events_of, plan, served
from tests.support.waiting import until

REQUESTS = 9


def test_service_finishes_running_requests_after_sigterm(tmp_path: Path) -> None:
    with served(tmp_path, langserve=True) as server, ThreadPoolExecutor(REQUESTS) as pool:

        def ask(number: int) -> str:
            body = plan("s1 = slow(b=1.5)")
            with server.client() as client:
                if number % 3 == 0:
                    with client.stream("POST", "/ask/stream", json=body) as response:
                        name, answer = events_of(response)[-1]
                    assert name == "done"
                elif number % 3 == 1:
                    answer = client.post("/casewright/invoke", json={"input": body}).json()
                    answer = answer["output"]
                else:
                    answer = client.post("/ask", json=body).json()
            return str(answer["steps"][0]["rows"][0]["value"])

        answers = [pool.submit(ask, number) for number in range(REQUESTS)]
        until(lambda: server.count_events("slow") == REQUESTS)
        server.process.send_signal(signal.SIGTERM)
        assert [answer.result() for answer in answers] == ["slept"] * REQUESTS
        assert server.process.wait(10) == 0
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{server.url}/healthz")


def test_run_of_a_killed_service_resumes_and_repeats_no_finished_step(tmp_path: Path) -> None:
    threads_file = str(tmp_path / "threads.db")
    body = plan("s1 = quick(); s2 = slow(a=s1.value, b=1.5); s3 = quick(a=s2.value)")
    with served(tmp_path, threads_file=threads_file) as server, ThreadPoolExecutor(1) as pool:
        with server.client() as client:
            client.post("/ask", json={"question": QUICK, "thread_id": "before"})
            request = pool.submit(client.post, "/ask", json={**body, "thread_id": "killed"})
            until(lambda: server.count_events("slow") == 1)
            # The next step may start before the result of this one is written.
            until(lambda: client.get("/threads/killed").json()["steps"])
            server.stop(signal.SIGKILL)
            assert isinstance(request.exception(), httpx.TransportError)
        count = len(server.lines())
    assert (tmp_path / "threads.db").stat().st_mode & 0o077 == 0
    with served(tmp_path, threads_file=threads_file) as server, server.client() as client:
        state = client.get("/threads/killed").json()
        assert state["status"] == "interrupted"
        assert [(step["id"], step["status"]) for step in state["steps"]] == [("s1", "done")]
        with server.client(OTHER) as other:
            assert other.post("/threads/killed/resume", json={}).status_code == 404
        answer = client.post("/threads/killed/resume", json={}).json()
        assert client.get("/threads/before").json()["status"] == "answered"
    assert [step["status"] for step in answer["steps"]] == ["done"] * 3
    calls = [line.split()[:2] for line in server.lines()[count:] if not line.startswith("slept")]
    assert calls == [["slow", "s2"], ["quick", "s3"]], "a finished step was repeated"
