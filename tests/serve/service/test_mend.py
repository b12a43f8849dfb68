"""A request sets mending and a deadline; the stream sends the sentences of each step."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import httpx
import pytest

from tests.serve.service.helpers import QUICK, Served, events_of, plan, served
from tests.support.waiting import until

BROKEN = plan("s1 = broken(); s2 = quick(a=s1.value) mended by: s1 = slow(b=0.1); s2 = slow(b=3)")
LAST_BROKEN = plan("s1 = quick(); s2 = broken() mended by: s1 = quick(); s2 = slow(b=0.1)")


def test_mended_plan_is_sent_as_a_second_plan_event(service: Served) -> None:
    body = {**LAST_BROKEN, "mend": "failure"}
    with service.client() as client, client.stream("POST", "/ask/stream", json=body) as response:
        events = events_of(response)
    plans = [data for name, data in events if name == "plan"]
    assert [[step["tool"] for step in event["steps"]] for event in plans] == [
        ["quick", "broken"],
        ["quick", "broken", "slow"],
    ]
    starts = [data["id"] for name, data in events if name == "step" and data["status"] == "started"]
    assert sorted(starts) == ["s1", "s2", "s3"], "a step started twice"
    assert [step["status"] for step in events[-1][1]["steps"]] == ["done", "failed", "done"]


def test_failed_steps_are_mended_only_if_the_request_asks_for_it(service: Served) -> None:
    with service.client() as client:
        answer = client.post("/ask", json=LAST_BROKEN).json()
        response = client.post("/ask", json={**LAST_BROKEN, "mend": "always"})
    assert [step["status"] for step in answer["steps"]] == ["done", "failed"]
    assert response.status_code == 422


def test_run_ends_at_its_deadline_with_the_available_evidence(service: Served) -> None:
    body = {**plan("s1 = quick(); s2 = slow(b=20)"), "deadline": 0.4}
    with service.client() as client, client.stream("POST", "/ask/stream", json=body) as response:
        events = events_of(response)
    answer = events[-1][1]
    assert answer["citations"] == ["E1"]
    assert answer["missing"] == [
        "s2 (slow) took too long. The run's deadline passed before the step ended."
    ]
    finished = [data for name, data in events if name == "step" and data["status"] == "done"]
    assert finished[0]["sentences"] == ["found for acme:"]


@pytest.mark.parametrize("deadline", ["0", "-1", '"5"', "1e999"])
def test_invalid_deadline_is_refused(service: Served, deadline: str) -> None:
    text = f'{{"question": "{QUICK}", "deadline": {deadline}}}'
    with service.client() as client:
        response = client.post("/ask", content=text, headers={"Content-Type": "application/json"})
    assert response.status_code == 422


@pytest.mark.slow
def test_run_killed_while_it_is_mended_resumes_and_repeats_no_finished_step(tmp_path: Path) -> None:
    file = str(tmp_path / "threads.db")
    body = {**BROKEN, "thread_id": "visit", "mend": "failure"}

    def ask(server: Served) -> None:
        with server.client() as client, pytest.raises(httpx.TransportError):
            client.post("/ask", json=body)

    with served(tmp_path, threads_file=file) as server:
        client_thread = threading.Thread(target=ask, args=(server,))
        client_thread.start()
        until(lambda: server.count_events("slept"))
        with server.client() as client:
            until(lambda: len(client.get("/threads/visit").json()["steps"]) == 3)
            steps = client.get("/threads/visit").json()["steps"]
        assert [step["status"] for step in steps] == ["failed", "skipped", "done"]
        server.stop(signal.SIGKILL)
        client_thread.join()
    with served(tmp_path, threads_file=file) as server, server.client() as client:
        assert len(client.get("/threads/visit").json()["plan_steps"]) == 4
        answer = client.post("/threads/visit/resume", json={}).json()
        slow = [line for line in server.lines() if line.startswith("slow ")]
    assert [step["status"] for step in answer["steps"]] == ["failed", "skipped", "done", "done"]
    assert sum(" s3 " in line for line in slow) == 1
    assert sum(" s4 " in line for line in slow) == 2
