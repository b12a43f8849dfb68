"""Threads that an older version wrote go on in this one.

``fixtures/threads-before-27.db`` was written by the service of commit 6728195 over the tests'
tools: a thread that is answered, one that waits for a reply, one whose second step was cancelled,
and one whose process was ended after the first checkpoint.
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
WRITTEN = Path(__file__).parent / "fixtures" / "threads-before-27.db"


@pytest_asyncio.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    file = shutil.copy(WRITTEN, tmp_path / "threads.db")
    async with service_client(tmp_path, threads_file=Path(file)) as opened:
        yield opened


async def state(client: httpx.AsyncClient, thread: str) -> Any:
    return (await client.get(f"/threads/{thread}")).json()


def statuses(answer: Any) -> list[str]:
    return [step["status"] for step in answer["steps"]]


async def test_state_of_threads_from_an_older_version_is_reported_correctly(
    client: httpx.AsyncClient,
) -> None:
    told = {name: await state(client, name) for name in ("answered", "waits", "interrupted")}
    assert {name: one["status"] for name, one in told.items()} == {
        "answered": "answered",
        "waits": "waiting",
        "interrupted": "interrupted",
    }
    assert told["answered"]["answer"]["citations"] == ["E1", "E2"]
    assert [step["id"] for step in told["interrupted"]["steps"]] == ["s1"]
    begun = await state(client, "begun")
    assert (begun["status"], begun["plan"], begun["steps"]) == ("interrupted", None, [])


async def test_interrupted_thread_from_an_older_version_resumes_and_repeats_no_finished_step(
    client: httpx.AsyncClient, tmp_path: Path
) -> None:
    answer = (await client.post("/threads/interrupted/resume", json={})).json()
    assert statuses(answer) == ["done"] * 3
    calls = [line.split()[:2] for line in (tmp_path / "log").read_text().splitlines()]
    assert calls == [["slow", "s2"], ["slept", "s2"], ["quick", "s3"]]


async def test_thread_from_an_older_version_with_only_a_question_is_answered(
    client: httpx.AsyncClient,
) -> None:
    answer = (await client.post("/threads/begun/resume", json={})).json()
    assert statuses(answer) == ["done"] * 2


async def test_waiting_thread_from_an_older_version_accepts_its_reply(
    client: httpx.AsyncClient,
) -> None:
    (asked,) = (await state(client, "waits"))["questions"]
    body = {"replies": {asked["id"]: "red"}}
    answer = (await client.post("/threads/waits/resume", json=body)).json()
    assert statuses(answer) == ["done"] * 3
    assert answer["steps"][1]["rows"][0]["value"] == "the user says red"


async def test_threads_from_an_older_version_answer_the_next_question(
    client: httpx.AsyncClient,
) -> None:
    for thread in ("answered", "waits", "interrupted", "begun"):
        asked = {"question": "please plan: s1 = quick()", "thread_id": thread}
        assert statuses((await client.post("/ask", json=asked)).json()) == ["done"]
        assert (await state(client, thread))["question"] == asked["question"]
