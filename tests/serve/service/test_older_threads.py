"""Threads that an older version wrote can be read and resumed.

The service of commit 6728195 wrote ``fixtures/threads-before-27.db`` with the tests' tools. It has
an answered thread, a thread that waits for a reply, a thread whose second step was cancelled, and a
thread whose process ended after the first checkpoint.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from tests.serve.service.in_process import service_client

pytestmark = pytest.mark.asyncio
OLD_FILE = Path(__file__).parent / "fixtures" / "threads-before-27.db"


@pytest_asyncio.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    file = shutil.copy(OLD_FILE, tmp_path / "threads.db")
    async with service_client(tmp_path, threads_file=Path(file)) as client:
        yield client


async def get_state(client: httpx.AsyncClient, thread: str) -> Any:
    return (await client.get(f"/threads/{thread}")).json()


def step_statuses(answer: Any) -> list[str]:
    return [step["status"] for step in answer["steps"]]


async def test_state_of_threads_from_an_older_version_is_reported_correctly(
    client: httpx.AsyncClient,
) -> None:
    states = {name: await get_state(client, name) for name in ("answered", "waits", "interrupted")}
    assert {name: state["status"] for name, state in states.items()} == {
        "answered": "answered",
        "waits": "waiting",
        "interrupted": "interrupted",
    }
    assert states["answered"]["answer"]["citations"] == ["E1", "E2"]
    assert [step["id"] for step in states["interrupted"]["steps"]] == ["s1"]
    state = await get_state(client, "begun")
    assert (state["status"], state["plan"], state["steps"]) == ("interrupted", None, [])


async def test_interrupted_thread_from_an_older_version_resumes_and_repeats_no_finished_step(
    client: httpx.AsyncClient, tmp_path: Path
) -> None:
    answer = (await client.post("/threads/interrupted/resume", json={})).json()
    assert step_statuses(answer) == ["done"] * 3
    calls = [line.split()[:2] for line in (tmp_path / "log").read_text().splitlines()]
    assert calls == [["slow", "s2"], ["slept", "s2"], ["quick", "s3"]]


async def test_thread_from_an_older_version_with_only_a_question_is_answered(
    client: httpx.AsyncClient,
) -> None:
    answer = (await client.post("/threads/begun/resume", json={})).json()
    assert step_statuses(answer) == ["done"] * 2


async def test_waiting_thread_from_an_older_version_accepts_its_reply(
    client: httpx.AsyncClient,
) -> None:
    (question,) = (await get_state(client, "waits"))["questions"]
    body = {"replies": {question["id"]: "red"}}
    answer = (await client.post("/threads/waits/resume", json=body)).json()
    assert step_statuses(answer) == ["done"] * 3
    assert answer["steps"][1]["rows"][0]["value"] == "the user says red"


async def test_threads_from_an_older_version_answer_the_next_question(
    client: httpx.AsyncClient,
) -> None:
    for thread in ("answered", "waits", "interrupted", "begun"):
        body = {"question": "please plan: s1 = quick()", "thread_id": thread}
        assert step_statuses((await client.post("/ask", json=body)).json()) == ["done"]
        assert (await get_state(client, thread))["question"] == body["question"]
