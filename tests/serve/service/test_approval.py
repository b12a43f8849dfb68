"""Plans are priced, bounded and approved over HTTP before anything runs."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.serve.service.helpers import plan, replied, served
from tests.serve.service.in_process import service_client

TWO = plan("s1 = quick(a=question); s2 = quick(a=s1.value)")
ALWAYS = {**TWO, "approve": "always", "thread_id": "t"}
Use = Callable[[httpx.AsyncClient], Awaitable[None]]


def in_service(folder: Path, use: Use, **options: Any) -> list[str]:
    """Use a service, and return what its tools did."""

    async def serving() -> None:
        async with service_client(folder, **options) as client:
            await use(client)

    asyncio.run(serving())
    log = folder / "log"
    return log.read_text().splitlines() if log.exists() else []


async def reply(client: httpx.AsyncClient, reply: object) -> httpx.Response:
    (question,) = (await client.get("/threads/t")).json()["questions"]
    body = {"replies": {question["id"]: reply}}
    return await client.post("/threads/t/resume", json=body)


def test_route_plan_returns_the_price_and_runs_no_tool(tmp_path: Path) -> None:
    async def use(client: httpx.AsyncClient) -> None:
        planned = (await client.post("/plan", json=TWO)).json()
        assert [step["id"] for step in planned["plan_steps"]] == ["s1", "s2"]
        assert planned["planner"]["price"]["calls"] == {"quick": 2}
        bounded = {**TWO, "budget": {"tool_calls": {"quick": 1}}}
        planned = (await client.post("/plan", json=bounded)).json()
        assert planned["plan"] == "s1 = quick(a=question)"
        assert planned["planner"]["left_out"]

    assert in_service(tmp_path, use) == []


def test_a_plan_waits_for_yes_and_then_runs(tmp_path: Path) -> None:
    async def use(client: httpx.AsyncClient) -> None:
        waiting = await client.post("/ask", json=ALWAYS)
        assert waiting.status_code == 202
        (question,) = waiting.json()["questions"]
        assert question["question"]["kind"] == "approval"
        assert question["question"]["price"]["calls"] == {"quick": 2}
        state = (await client.get("/threads/t")).json()
        assert (state["status"], state["steps"]) == ("waiting", [])
        assert state["plan"] == question["question"]["plan"]
        answer = (await reply(client, "yes")).json()
        assert [step["status"] for step in answer["steps"]] == ["done", "done"]

    assert len(in_service(tmp_path, use)) == 2


def test_plan_that_is_not_approved_calls_no_tool(tmp_path: Path) -> None:
    async def use(client: httpx.AsyncClient) -> None:
        await client.post("/ask", json=ALWAYS)
        answer = (await reply(client, False)).json()
        assert "The plan was not approved." in answer["text"]
        assert (await client.get("/threads/t")).json()["status"] == "answered"

    assert in_service(tmp_path, use) == []


def test_invalid_edited_plan_is_asked_again_and_a_stale_reply_is_refused(
    tmp_path: Path,
) -> None:
    async def use(client: httpx.AsyncClient) -> None:
        first = (await client.post("/ask", json=ALWAYS)).json()["questions"][0]["id"]
        again = await reply(client, "s1 = delete()")
        assert again.status_code == 202
        (question,) = again.json()["questions"]
        assert "There is no tool delete" in question["question"]["violations"][0]
        stale = {"replies": {first: "yes"}}
        assert (await client.post("/threads/t/resume", json=stale)).status_code == 409
        answer = (await reply(client, "s1 = quick(a=question)")).json()
        assert answer["plan"] == "s1 = quick(a=question)"
        assert [step["id"] for step in answer["plan_steps"]] == ["s1"]

    assert len(in_service(tmp_path, use)) == 1


SEVERAL = plan('s1 = asks(a="Which lathe?"); s2 = asks(a="Which mill?"); s3 = nested(a="a lathe")')


def test_several_questions_and_a_nested_plan_are_replied_to_together(tmp_path: Path) -> None:
    async def use(client: httpx.AsyncClient) -> None:
        waiting = (await client.post("/ask", json={**SEVERAL, "thread_id": "t"})).json()
        lathe, mill, nested = waiting["questions"]
        assert (lathe["question"], mill["question"]) == ("Which lathe?", "Which mill?")
        assert nested["question"]["kind"] == "approval"
        stale = {"replies": {lathe["id"]: "M1", "gone": "M2"}}
        assert (await client.post("/threads/t/resume", json=stale)).status_code == 409
        replies = {lathe["id"]: "M1", mill["id"]: "M2", nested["id"]: "yes"}
        ended = await client.post("/threads/t/resume", json={"replies": replies})
        assert ended.status_code == 200
        said = [step["rows"][0]["value"] for step in ended.json()["steps"]]
        assert said[:2] == ["the user says M1", "the user says M2"]
        assert said[2].startswith("- found for acme")

    assert len(in_service(tmp_path, use)) == 1


def test_request_above_its_approval_price_waits_and_needs_a_thread(tmp_path: Path) -> None:
    async def use(client: httpx.AsyncClient) -> None:
        above = {**TWO, "approve": {"calls": 1}}
        assert (await client.post("/ask", json=above)).status_code == 409
        assert (await client.post("/ask", json={**above, "thread_id": "t"})).status_code == 202
        below = {**TWO, "approve": {"calls": 2}}
        assert (await client.post("/ask", json=below)).status_code == 200

    assert len(in_service(tmp_path, use)) == 2


def test_the_operator_s_budget_and_approval_hold_for_every_request(tmp_path: Path) -> None:
    async def use(client: httpx.AsyncClient) -> None:
        asked = {**TWO, "budget": {"calls": 9}, "thread_id": "t"}
        (question,) = (await client.post("/ask", json=asked)).json()["questions"]
        assert question["question"]["price"]["calls"] == {"quick": 1}
        again = await reply(client, "s1 = quick()\ns2 = quick()")
        assert "calls 2, at most 1" in again.json()["questions"][0]["question"]["violations"][0]

    assert in_service(tmp_path, use, max_calls=1, approve="always") == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"budget": {"calls": 0}},
        {"budget": {"tool_calls": {"qick": 1}}},
        {"budget": {"row": 2}},
        {"approve": "never"},
        {"approve": {}},
    ],
)
def test_invalid_budget_or_approval_is_refused(tmp_path: Path, wrong: Any) -> None:
    async def use(client: httpx.AsyncClient) -> None:
        assert (await client.post("/ask", json={**TWO, **wrong})).status_code == 422

    assert in_service(tmp_path, use) == []


@pytest.mark.slow
def test_waiting_approval_survives_a_killed_service(tmp_path: Path) -> None:
    kept = {"threads_file": str(tmp_path / "threads.db")}
    with served(tmp_path, **kept) as server, server.client() as client:
        first = client.post("/ask", json=ALWAYS).json()["questions"]
        server.stop(signal.SIGKILL)
    with served(tmp_path, **kept) as server, server.client() as client:
        assert client.get("/threads/t").json()["questions"] == first
        answer = replied(client, "t", "yes").json()
        assert [step["status"] for step in answer["steps"]] == ["done", "done"]
        assert server.did("quick") == 2
