"""A request repeated with its Idempotency-Key does nothing twice; a reply names its question."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from langgraph.store.memory import InMemoryStore
from starlette.responses import Response

from casewright.serve.service import repeats
from casewright.serve.service.repeats import Repeats, attempt_of
from tests.serve.service.helpers import OTHER, plan
from tests.serve.service.in_process import service_client
from tests.support.postgres import database, own_database

pytestmark = pytest.mark.asyncio
TWO = plan("s1 = quick(); s2 = quick(a=s1.value)")
KEY = {"Idempotency-Key": '"8e03978e-40d5-43dd-bc93-6894a57f9324"'}
WHERE = pytest.mark.parametrize("where", ["memory", "file", "database"])
LASTING = pytest.mark.parametrize("where", ["file", "database"])


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with database() as found:
        yield found


@pytest.fixture
def storage(where: str, tmp_path: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    """Where threads are kept, and what requests returned."""
    if where == "database":
        name = f"own_{abs(hash(tmp_path))}"
        return {"threads_url": own_database(request.getfixturevalue("url"), name)}
    return {} if where == "memory" else {"threads_file": tmp_path / "threads.db"}


def calls(folder: Path) -> int:
    log = folder / "log"
    return len(log.read_text().splitlines()) if log.exists() else 0


def events(reply: httpx.Response) -> list[tuple[str, Any]]:
    blocks = [block for block in reply.text.split("\n\n") if block.startswith("event: ")]
    lines = [block.split("\n", 1) for block in blocks]
    return [
        (name.removeprefix("event: "), json.loads(data.removeprefix("data: ")))
        for name, data in lines
    ]


@WHERE
@pytest.mark.parametrize("thread", [{}, {"thread_id": "t"}])
async def test_a_repeated_question_returns_the_first_answer_and_calls_no_tool(
    tmp_path: Path, storage: dict[str, Any], thread: dict[str, str]
) -> None:
    async with service_client(tmp_path, **storage) as client:
        first = await client.post("/ask", json={**TWO, **thread}, headers=KEY)
        again = await client.post("/ask", json={**TWO, **thread}, headers=KEY)
        assert first.status_code == 200
        assert (again.status_code, again.content) == (200, first.content)
        assert again.headers["content-type"] == first.headers["content-type"]
        # The quotes are the standard's; a client may leave them out.
        bare = {"Idempotency-Key": KEY["Idempotency-Key"].strip('"')}
        again = await client.post("/ask", json={**TWO, **thread}, headers=bare)
        assert again.content == first.content
        assert calls(tmp_path) == 2
        # Without a key, or with another, it is a new one.
        for headers in ({}, {"Idempotency-Key": '"another"'}):
            new = await client.post("/ask", json={**TWO, **thread}, headers=headers)
            assert new.json()["run_id"] != first.json()["run_id"]


@LASTING
async def test_a_question_repeated_after_a_restart_returns_the_first_answer(
    tmp_path: Path, storage: dict[str, Any]
) -> None:
    async with service_client(tmp_path, **storage) as client:
        first = await client.post("/ask", json=TWO, headers=KEY)
    async with service_client(tmp_path, **storage) as client:
        again = await client.post("/ask", json=TWO, headers=KEY)
    assert again.content == first.content
    assert calls(tmp_path) == 2


async def test_repeated_stream_sends_only_its_last_event(tmp_path: Path) -> None:
    async with service_client(tmp_path) as client:
        first = events(await client.post("/ask/stream", json=TWO, headers=KEY))
        again = events(await client.post("/ask/stream", json=TWO, headers=KEY))
        waits = {**plan("s1 = asks()"), "thread_id": "t"}
        other = {"Idempotency-Key": '"other"'}
        asked = events(await client.post("/ask/stream", json=waits, headers=other))
        asked_again = events(await client.post("/ask/stream", json=waits, headers=other))
    assert again == first[-1:]
    assert again[0][0] == "done"
    assert asked_again == asked[-1:]
    assert asked_again[0][0] == "waiting"
    assert calls(tmp_path) == 2


async def test_idempotency_key_belongs_to_one_request_of_one_tenant(tmp_path: Path) -> None:
    async with service_client(tmp_path) as client:
        mine = await client.post("/ask", json=TWO, headers=KEY)
        theirs = await client.post(
            "/ask", json=TWO, headers={**KEY, "Authorization": f"Bearer {OTHER}"}
        )
        assert "found for acme" in mine.text
        assert "found for other" in theirs.text
        for path, body in (
            ("/ask", {**TWO, "thread_id": "t"}),
            ("/ask", {"question": "another"}),
            ("/threads/t/resume", {}),
        ):
            refused = await client.post(path, json=body, headers=KEY)
            assert refused.status_code == 422
            assert "another request" in refused.json()["detail"]


@WHERE
async def test_stored_response_is_deleted_with_its_thread(
    tmp_path: Path, storage: dict[str, Any]
) -> None:
    async with service_client(tmp_path, **storage) as client:
        body = {**TWO, "thread_id": "t"}
        first = (await client.post("/ask", json=body, headers=KEY)).json()
        assert (await client.delete("/threads/t")).status_code == 204
        again = (await client.post("/ask", json=body, headers=KEY)).json()
    assert again["run_id"] != first["run_id"]


async def test_repetition_of_a_running_request_is_refused(tmp_path: Path) -> None:
    slow = plan("s1 = slow(b=0.4)")
    async with service_client(tmp_path) as client, asyncio.timeout(30):
        first = asyncio.ensure_future(client.post("/ask", json=slow, headers=KEY))
        while not calls(tmp_path):
            await asyncio.sleep(0.01)
        again = await client.post("/ask", json=slow, headers=KEY)
        assert again.status_code == 409
        assert "is at work" in again.json()["detail"]
        ended = (await first).content
        assert (await client.post("/ask", json=slow, headers=KEY)).content == ended
    assert calls(tmp_path) == 2, "slow, and slept"


@WHERE
async def test_repetition_of_a_timed_out_request_resumes_its_run(
    tmp_path: Path, storage: dict[str, Any]
) -> None:
    asked = {**plan("s1 = quick(); s2 = slow(a=s1.value, b=3)"), "thread_id": "t"}
    async with service_client(tmp_path, **storage, request_seconds=1.0) as client:
        assert (await client.post("/ask", json=asked, headers=KEY)).status_code == 504
        begun = calls(tmp_path)
        assert (await client.post("/ask", json=asked, headers=KEY)).status_code == 504
        said = (tmp_path / "log").read_text().splitlines()[begun:]
    assert [line.split()[0] for line in said] == ["slow", "cancelled"], "s1 was finished"


@pytest.mark.parametrize("key", ["", " ", '"', '"a', "a b", "x" * 129, '"ü"'])
async def test_invalid_idempotency_key_is_refused(tmp_path: Path, key: str) -> None:
    async with service_client(tmp_path) as client:
        headers = [(b"Idempotency-Key", key.encode())]
        assert (await client.post("/ask", json=TWO, headers=headers)).status_code == 422


@pytest_asyncio.fixture
async def waiting(
    tmp_path: Path, storage: dict[str, Any]
) -> AsyncIterator[tuple[httpx.AsyncClient, str]]:
    """A run whose tool asks two things, one after the other; and what names the first."""
    async with service_client(tmp_path, **storage) as client:
        asked = {**plan("s1 = twice(); s2 = asks(a=s1.value)"), "thread_id": "t"}
        told = await client.post("/ask", json=asked)
        yield client, told.json()["questions"][0]["id"]


async def resumed(client: httpx.AsyncClient, body: Any, **more: Any) -> httpx.Response:
    return await client.post("/threads/t/resume", json=body, **more)


@LASTING
async def test_a_retried_reply_does_not_answer_the_next_question(
    waiting: tuple[httpx.AsyncClient, str],
) -> None:
    client, first = waiting
    body = {"replies": {first: "red"}}
    told = await resumed(client, body, headers=KEY)
    assert [one["question"] for one in told.json()["questions"]] == ["the second?"]
    again = await resumed(client, body, headers=KEY)
    assert (again.status_code, again.content) == (202, told.content)
    for headers in ({}, {"Idempotency-Key": '"another"'}):
        assert (await resumed(client, body, headers=headers)).status_code == 409
    open_ = (await client.get("/threads/t")).json()["questions"]
    assert open_ == told.json()["questions"]
    last = await resumed(client, {"replies": {open_[0]["id"]: "blue"}})
    assert last.json()["questions"][0]["question"] == "the user says red, then blue"


@LASTING
async def test_a_reply_to_an_earlier_run_is_refused(waiting: tuple[httpx.AsyncClient, str]) -> None:
    client, first = waiting
    again = {**plan("s1 = twice()"), "thread_id": "t"}
    second = (await client.post("/ask", json=again)).json()["questions"][0]["id"]
    assert second != first
    assert (await resumed(client, {"replies": {first: "red"}})).status_code == 409
    assert (await resumed(client, {"replies": {second: "red"}})).status_code == 202


@pytest.mark.parametrize("where", ["file"])
@pytest.mark.parametrize("body", [{"replies": {}}, {"replies": "red"}, {"replies": {"x" * 129: 1}}])
async def test_malformed_replies_are_refused(
    waiting: tuple[httpx.AsyncClient, str], body: Any
) -> None:
    client, _ = waiting
    assert (await resumed(client, body)).status_code == 422


async def test_number_of_stored_responses_in_memory_is_limited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(repeats, "MAX_IN_MEMORY", 3)
    known = Repeats(InMemoryStore(), bounded=True)
    worked = []

    async def asked(number: int) -> None:
        async def work() -> Response:
            worked.append(number)
            return Response("{}")

        await known.once(attempt_of(str(number), "d", "acme", None, "ask"), work)

    for number in (0, 1, 2, 3, 3, 2, 0):
        await asked(number)
    assert worked == [0, 1, 2, 3, 0]
