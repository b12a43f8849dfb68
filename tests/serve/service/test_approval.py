"""Plans are priced, limited and approved over HTTP before a tool runs."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.serve.service.helpers import plan, post_reply, served
from tests.serve.service.in_process import service_client

TWO_STEPS = plan("s1 = quick(a=question); s2 = quick(a=s1.value)")
NEEDS_APPROVAL = {**TWO_STEPS, "approve": "always", "thread_id": "t"}
Scenario = Callable[[httpx.AsyncClient], Awaitable[None]]


def run_in_service(folder: Path, scenario: Scenario, **options: Any) -> list[str]:
    """Run a scenario with a client of a service; return the log of the tools."""

    async def serving() -> None:
        async with service_client(folder, **options) as client:
            await scenario(client)

    asyncio.run(serving())
    log = folder / "log"
    return log.read_text().splitlines() if log.exists() else []


async def reply_to_plan(client: httpx.AsyncClient, reply: object) -> httpx.Response:
    (question,) = (await client.get("/threads/t")).json()["questions"]
    body = {"replies": {question["id"]: reply}}
    return await client.post("/threads/t/resume", json=body)


def test_route_plan_returns_the_price_and_runs_no_tool(tmp_path: Path) -> None:
    async def scenario(client: httpx.AsyncClient) -> None:
        result = (await client.post("/plan", json=TWO_STEPS)).json()
        assert [step["id"] for step in result["plan_steps"]] == ["s1", "s2"]
        assert result["planner"]["price"]["calls"] == {"quick": 2}
        limited = {**TWO_STEPS, "budget": {"tool_calls": {"quick": 1}}}
        result = (await client.post("/plan", json=limited)).json()
        assert result["plan"] == "s1 = quick(a=question)"
        assert result["planner"]["left_out"]

    assert run_in_service(tmp_path, scenario) == []


def test_plan_that_needs_approval_runs_after_the_reply_yes(tmp_path: Path) -> None:
    async def scenario(client: httpx.AsyncClient) -> None:
        waiting = await client.post("/ask", json=NEEDS_APPROVAL)
        assert waiting.status_code == 202
        (question,) = waiting.json()["questions"]
        assert question["question"]["kind"] == "approval"
        assert question["question"]["price"]["calls"] == {"quick": 2}
        state = (await client.get("/threads/t")).json()
        assert (state["status"], state["steps"]) == ("waiting", [])
        assert state["plan"] == question["question"]["plan"]
        answer = (await reply_to_plan(client, "yes")).json()
        assert [step["status"] for step in answer["steps"]] == ["done", "done"]

    assert len(run_in_service(tmp_path, scenario)) == 2


def test_plan_that_is_not_approved_calls_no_tool(tmp_path: Path) -> None:
    async def scenario(client: httpx.AsyncClient) -> None:
        await client.post("/ask", json=NEEDS_APPROVAL)
        answer = (await reply_to_plan(client, False)).json()
        assert "The plan was not approved." in answer["text"]
        assert (await client.get("/threads/t")).json()["status"] == "answered"

    assert run_in_service(tmp_path, scenario) == []


def test_invalid_edited_plan_needs_another_reply_and_a_stale_reply_is_refused(
    tmp_path: Path,
) -> None:
    async def scenario(client: httpx.AsyncClient) -> None:
        first_id = (await client.post("/ask", json=NEEDS_APPROVAL)).json()["questions"][0]["id"]
        response = await reply_to_plan(client, "s1 = delete()")
        assert response.status_code == 202
        (question,) = response.json()["questions"]
        assert "There is no tool delete" in question["question"]["violations"][0]
        stale = {"replies": {first_id: "yes"}}
        assert (await client.post("/threads/t/resume", json=stale)).status_code == 409
        answer = (await reply_to_plan(client, "s1 = quick(a=question)")).json()
        assert answer["plan"] == "s1 = quick(a=question)"
        assert [step["id"] for step in answer["plan_steps"]] == ["s1"]

    assert len(run_in_service(tmp_path, scenario)) == 1


SEVERAL = plan('s1 = asks(a="Which lathe?"); s2 = asks(a="Which mill?"); s3 = nested(a="a lathe")')


def test_one_request_replies_to_several_questions_and_a_nested_plan(tmp_path: Path) -> None:
    async def scenario(client: httpx.AsyncClient) -> None:
        waiting = (await client.post("/ask", json={**SEVERAL, "thread_id": "t"})).json()
        lathe, mill, nested = waiting["questions"]
        assert (lathe["question"], mill["question"]) == ("Which lathe?", "Which mill?")
        assert nested["question"]["kind"] == "approval"
        stale = {"replies": {lathe["id"]: "M1", "gone": "M2"}}
        assert (await client.post("/threads/t/resume", json=stale)).status_code == 409
        replies = {lathe["id"]: "M1", mill["id"]: "M2", nested["id"]: "yes"}
        response = await client.post("/threads/t/resume", json={"replies": replies})
        assert response.status_code == 200
        values = [step["rows"][0]["value"] for step in response.json()["steps"]]
        assert values[:2] == ["the user says M1", "the user says M2"]
        assert values[2].startswith("- found for acme")

    assert len(run_in_service(tmp_path, scenario)) == 1


def test_request_above_its_approval_price_waits_and_needs_a_thread(tmp_path: Path) -> None:
    async def scenario(client: httpx.AsyncClient) -> None:
        above = {**TWO_STEPS, "approve": {"calls": 1}}
        assert (await client.post("/ask", json=above)).status_code == 409
        assert (await client.post("/ask", json={**above, "thread_id": "t"})).status_code == 202
        below = {**TWO_STEPS, "approve": {"calls": 2}}
        assert (await client.post("/ask", json=below)).status_code == 200

    assert len(run_in_service(tmp_path, scenario)) == 2


def test_budget_and_approval_of_the_operator_apply_to_every_request(tmp_path: Path) -> None:
    async def scenario(client: httpx.AsyncClient) -> None:
        body = {**TWO_STEPS, "budget": {"calls": 9}, "thread_id": "t"}
        (question,) = (await client.post("/ask", json=body)).json()["questions"]
        assert question["question"]["price"]["calls"] == {"quick": 1}
        response = await reply_to_plan(client, "s1 = quick()\ns2 = quick()")
        assert "calls 2, at most 1" in response.json()["questions"][0]["question"]["violations"][0]

    assert run_in_service(tmp_path, scenario, max_calls=1, approve="always") == []


@pytest.mark.parametrize(
    "fields",
    [
        {"budget": {"calls": 0}},
        {"budget": {"tool_calls": {"qick": 1}}},
        {"budget": {"row": 2}},
        {"approve": "never"},
        {"approve": {}},
    ],
)
def test_invalid_budget_or_approval_is_refused(tmp_path: Path, fields: Any) -> None:
    async def scenario(client: httpx.AsyncClient) -> None:
        assert (await client.post("/ask", json={**TWO_STEPS, **fields})).status_code == 422

    assert run_in_service(tmp_path, scenario) == []


@pytest.mark.slow
def test_run_that_waits_for_approval_survives_a_killed_service(tmp_path: Path) -> None:
    options = {"threads_file": str(tmp_path / "threads.db")}
    with served(tmp_path, **options) as server, server.client() as client:
        questions = client.post("/ask", json=NEEDS_APPROVAL).json()["questions"]
        server.stop(signal.SIGKILL)
    with served(tmp_path, **options) as server, server.client() as client:
        assert client.get("/threads/t").json()["questions"] == questions
        answer = post_reply(client, "t", "yes").json()
        assert [step["status"] for step in answer["steps"]] == ["done", "done"]
        assert server.count_events("quick") == 2
