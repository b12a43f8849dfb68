"""A request repeated with its Idempotency-Key has no second effect; a reply names its question."""

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
TWO_STEPS = plan("s1 = quick(); s2 = quick(a=s1.value)")
KEY = {"Idempotency-Key": '"8e03978e-40d5-43dd-bc93-6894a57f9324"'}
STORAGES = pytest.mark.parametrize("kind", ["memory", "file", "database"])
DURABLE = pytest.mark.parametrize("kind", ["file", "database"])


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with database() as url:
        yield url


@pytest.fixture
def storage(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return the options that store threads and responses in one kind of storage."""
    if kind == "database":
        name = f"own_{abs(hash(tmp_path))}"
        return {"threads_url": own_database(request.getfixturevalue("url"), name)}
    return {} if kind == "memory" else {"threads_file": tmp_path / "threads.db"}


def count_log_lines(folder: Path) -> int:
    log = folder / "log"
    return len(log.read_text().splitlines()) if log.exists() else 0


def parse_events(response: httpx.Response) -> list[tuple[str, Any]]:
    blocks = [block for block in response.text.split("\n\n") if block.startswith("event: ")]
    lines = [block.split("\n", 1) for block in blocks]
    return [
        (name.removeprefix("event: "), json.loads(data.removeprefix("data: ")))
        for name, data in lines
    ]


@STORAGES
@pytest.mark.parametrize("thread", [{}, {"thread_id": "t"}])
async def test_a_repeated_question_returns_the_first_answer_and_calls_no_tool(
    tmp_path: Path, storage: dict[str, Any], thread: dict[str, str]
) -> None:
    async with service_client(tmp_path, **storage) as client:
        first = await client.post("/ask", json={**TWO_STEPS, **thread}, headers=KEY)
        repeated = await client.post("/ask", json={**TWO_STEPS, **thread}, headers=KEY)
        assert first.status_code == 200
        assert (repeated.status_code, repeated.content) == (200, first.content)
        assert repeated.headers["content-type"] == first.headers["content-type"]
        # The standard requires the quotes; the service also accepts a key without them.
        unquoted = {"Idempotency-Key": KEY["Idempotency-Key"].strip('"')}
        repeated = await client.post("/ask", json={**TWO_STEPS, **thread}, headers=unquoted)
        assert repeated.content == first.content
        assert count_log_lines(tmp_path) == 2
        # Without this key, the request is a new one.
        for headers in ({}, {"Idempotency-Key": '"another"'}):
            unkeyed = await client.post("/ask", json={**TWO_STEPS, **thread}, headers=headers)
            assert unkeyed.json()["run_id"] != first.json()["run_id"]


@DURABLE
async def test_a_question_repeated_after_a_restart_returns_the_first_answer(
    tmp_path: Path, storage: dict[str, Any]
) -> None:
    async with service_client(tmp_path, **storage) as client:
        first = await client.post("/ask", json=TWO_STEPS, headers=KEY)
    async with service_client(tmp_path, **storage) as client:
        repeated = await client.post("/ask", json=TWO_STEPS, headers=KEY)
    assert repeated.content == first.content
    assert count_log_lines(tmp_path) == 2


async def test_repeated_stream_sends_only_its_last_event(tmp_path: Path) -> None:
    async with service_client(tmp_path) as client:
        first = parse_events(await client.post("/ask/stream", json=TWO_STEPS, headers=KEY))
        repeated = parse_events(await client.post("/ask/stream", json=TWO_STEPS, headers=KEY))
        body = {**plan("s1 = asks()"), "thread_id": "t"}
        headers = {"Idempotency-Key": '"other"'}
        first_wait = parse_events(await client.post("/ask/stream", json=body, headers=headers))
        second_wait = parse_events(await client.post("/ask/stream", json=body, headers=headers))
    assert repeated == first[-1:]
    assert repeated[0][0] == "done"
    assert second_wait == first_wait[-1:]
    assert second_wait[0][0] == "waiting"
    assert count_log_lines(tmp_path) == 2


async def test_idempotency_key_belongs_to_one_request_of_one_tenant(tmp_path: Path) -> None:
    async with service_client(tmp_path) as client:
        acme = await client.post("/ask", json=TWO_STEPS, headers=KEY)
        other = await client.post(
            "/ask", json=TWO_STEPS, headers={**KEY, "Authorization": f"Bearer {OTHER}"}
        )
        assert "found for acme" in acme.text
        assert "found for other" in other.text
        for path, body in (
            ("/ask", {**TWO_STEPS, "thread_id": "t"}),
            ("/ask", {"question": "another"}),
            ("/threads/t/resume", {}),
        ):
            response = await client.post(path, json=body, headers=KEY)
            assert response.status_code == 422
            assert "another request" in response.json()["detail"]


@STORAGES
async def test_stored_response_is_deleted_with_its_thread(
    tmp_path: Path, storage: dict[str, Any]
) -> None:
    async with service_client(tmp_path, **storage) as client:
        body = {**TWO_STEPS, "thread_id": "t"}
        first = (await client.post("/ask", json=body, headers=KEY)).json()
        assert (await client.delete("/threads/t")).status_code == 204
        repeated = (await client.post("/ask", json=body, headers=KEY)).json()
    assert repeated["run_id"] != first["run_id"]


async def test_repetition_of_a_running_request_is_refused(tmp_path: Path) -> None:
    slow = plan("s1 = slow(b=0.4)")
    async with service_client(tmp_path) as client, asyncio.timeout(30):
        first = asyncio.ensure_future(client.post("/ask", json=slow, headers=KEY))
        while not count_log_lines(tmp_path):
            await asyncio.sleep(0.01)
        repeated = await client.post("/ask", json=slow, headers=KEY)
        assert repeated.status_code == 409
        assert "is at work" in repeated.json()["detail"]
        content = (await first).content
        assert (await client.post("/ask", json=slow, headers=KEY)).content == content
    assert count_log_lines(tmp_path) == 2, "slow and slept"


@STORAGES
async def test_repetition_of_a_timed_out_request_resumes_its_run(
    tmp_path: Path, storage: dict[str, Any]
) -> None:
    body = {**plan("s1 = quick(); s2 = slow(a=s1.value, b=3)"), "thread_id": "t"}
    async with service_client(tmp_path, **storage, request_seconds=1.0) as client:
        assert (await client.post("/ask", json=body, headers=KEY)).status_code == 504
        count = count_log_lines(tmp_path)
        assert (await client.post("/ask", json=body, headers=KEY)).status_code == 504
        lines = (tmp_path / "log").read_text().splitlines()[count:]
    assert [line.split()[0] for line in lines] == ["slow", "cancelled"], "s1 was finished"


@pytest.mark.parametrize("key", ["", " ", '"', '"a', "a b", "x" * 129, '"ü"'])
async def test_invalid_idempotency_key_is_refused(tmp_path: Path, key: str) -> None:
    async with service_client(tmp_path) as client:
        headers = [(b"Idempotency-Key", key.encode())]
        assert (await client.post("/ask", json=TWO_STEPS, headers=headers)).status_code == 422


@pytest_asyncio.fixture
async def waiting(
    tmp_path: Path, storage: dict[str, Any]
) -> AsyncIterator[tuple[httpx.AsyncClient, str]]:
    """Yield a client whose run waits for the first of two replies, and the first question's id."""
    async with service_client(tmp_path, **storage) as client:
        body = {**plan("s1 = twice(); s2 = asks(a=s1.value)"), "thread_id": "t"}
        response = await client.post("/ask", json=body)
        yield client, response.json()["questions"][0]["id"]


async def resume(client: httpx.AsyncClient, body: Any, **options: Any) -> httpx.Response:
    return await client.post("/threads/t/resume", json=body, **options)


@DURABLE
async def test_a_retried_reply_does_not_answer_the_next_question(
    waiting: tuple[httpx.AsyncClient, str],
) -> None:
    client, first_id = waiting
    body = {"replies": {first_id: "red"}}
    response = await resume(client, body, headers=KEY)
    assert [question["question"] for question in response.json()["questions"]] == ["the second?"]
    repeated = await resume(client, body, headers=KEY)
    assert (repeated.status_code, repeated.content) == (202, response.content)
    for headers in ({}, {"Idempotency-Key": '"another"'}):
        assert (await resume(client, body, headers=headers)).status_code == 409
    questions = (await client.get("/threads/t")).json()["questions"]
    assert questions == response.json()["questions"]
    last = await resume(client, {"replies": {questions[0]["id"]: "blue"}})
    assert last.json()["questions"][0]["question"] == "the user says red, then blue"


@DURABLE
async def test_a_reply_to_an_earlier_run_is_refused(waiting: tuple[httpx.AsyncClient, str]) -> None:
    client, first_id = waiting
    body = {**plan("s1 = twice()"), "thread_id": "t"}
    second_id = (await client.post("/ask", json=body)).json()["questions"][0]["id"]
    assert second_id != first_id
    assert (await resume(client, {"replies": {first_id: "red"}})).status_code == 409
    assert (await resume(client, {"replies": {second_id: "red"}})).status_code == 202


@pytest.mark.parametrize("kind", ["file"])
@pytest.mark.parametrize("body", [{"replies": {}}, {"replies": "red"}, {"replies": {"x" * 129: 1}}])
async def test_malformed_replies_are_refused(
    waiting: tuple[httpx.AsyncClient, str], body: Any
) -> None:
    client, _ = waiting
    assert (await resume(client, body)).status_code == 422


async def test_number_of_stored_responses_in_memory_is_limited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(repeats, "MAX_IN_MEMORY", 3)
    stored = Repeats(InMemoryStore(), bounded=True)
    computed = []

    async def send_request(number: int) -> None:
        async def work() -> Response:
            computed.append(number)
            return Response("{}")

        await stored.once(attempt_of(str(number), "d", "acme", None, "ask"), work)

    for number in (0, 1, 2, 3, 3, 2, 0):
        await send_request(number)
    assert computed == [0, 1, 2, 3, 0]
