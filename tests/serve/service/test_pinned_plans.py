"""Pinned plans are listed and run over HTTP, through the same graph as questions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx

from casewright.planner import parse_plan, pin_plan
from casewright.tools import Toolbox
from tests.serve.service.in_process import asking
from tests.serve.service.server_process import tools

JSON = {"Content-Type": "application/json"}
Use = Callable[[httpx.AsyncClient], Awaitable[None]]


def pin(folder: Path) -> Path:
    """Pin a plan of two steps in a folder; return the folder."""
    plan = parse_plan('s1 = quick(a="phone")\ns2 = quick(a=s1.value)')
    toolbox = Toolbox(tools(folder / "log"))
    pin_plan("memory", "memory of my phone", plan, toolbox, {"what": "phone"}).save(folder)
    wait = parse_plan("s1 = blocking(b=7)")
    pin_plan("wait", "wait 7 seconds", wait, toolbox, {"seconds": 7}).save(folder)
    return folder


def in_service(folder: Path, use: Use) -> None:
    async def serving() -> None:
        async with asking(folder, plans_folder=pin(folder)) as client:
            await use(client)

    asyncio.run(serving())


def test_a_pinned_plan_is_listed_and_runs_with_a_value_of_its_parameter(tmp_path: Path) -> None:
    async def use(client: httpx.AsyncClient) -> None:
        listed, _ = (await client.get("/plans")).json()["plans"]
        assert (listed["parameters"], listed["differences"]) == ({"what": "phone"}, [])
        body = {"with": {"what": 'tablet") {what}'}, "thread_id": "t"}
        answer = (await client.post("/plans/memory/run", json=body)).json()
        assert answer["plan"].startswith('s1 = quick(a="tablet\\") {what}")')
        assert answer["planner"]["name"] == "pinned:memory"
        assert [step["status"] for step in answer["steps"]] == ["done", "done"]
        thread = (await client.get("/threads/t")).json()
        assert thread["question"] == 'memory of my tablet") {what}'

    in_service(tmp_path, use)


def test_a_run_of_a_pinned_plan_keeps_to_a_budget_and_waits_for_approval(tmp_path: Path) -> None:
    async def use(client: httpx.AsyncClient) -> None:
        one = await client.post("/plans/memory/run", json={"budget": {"calls": 1}})
        assert len(one.json()["steps"]) == 1
        body = {"approve": "always", "thread_id": "t"}
        waiting = await client.post("/plans/memory/run", json=body)
        assert waiting.status_code == 202
        (question,) = waiting.json()["questions"]
        sent = {"reply": "yes", "reply_to": question["id"]}
        answer = (await client.post("/threads/t/resume", json=sent)).json()
        assert [step["status"] for step in answer["steps"]] == ["done", "done"]

    in_service(tmp_path, use)


def test_unknown_plans_wrong_values_and_changed_tools_are_refused(tmp_path: Path) -> None:
    async def use(client: httpx.AsyncClient) -> None:
        for path, body, status in (
            ("/plans/other/run", {}, 404),
            ("/plans/memory/run", {"with": {"what": 7}}, 422),
            ("/plans/memory/run", {"with": {"whom": "x"}}, 422),
            ("/plans/memory/run", {"with": {"what": " " * 9000}}, 422),
            ("/plans/memory/run", {"with": {"what": "\ud800"}}, 422),
            ("/plans/wait/run", {"with": {"seconds": 10**30}}, 422),
        ):
            sent = json.dumps(body)
            refused = await client.post(path, content=sent, headers=JSON)
            assert refused.status_code == status, refused.text
        file = tmp_path / "memory.toml"
        file.write_text(file.read_text().replace("fingerprint = ", 'fingerprint = "other" # '))
        refused = await client.post("/plans/memory/run", json={})
        assert refused.status_code == 409
        assert "quick" in refused.json()["detail"]
        file.write_text("x" * 70_000)
        refused = await client.post("/plans/memory/run", json={})
        assert refused.status_code == 422
        assert str(tmp_path) not in refused.text
        (listed,) = (await client.get("/plans")).json()["plans"]
        assert listed["name"] == "wait"

    in_service(tmp_path, use)


def test_without_a_folder_there_are_no_pinned_plans(tmp_path: Path) -> None:
    async def serving() -> None:
        async with asking(tmp_path) as client:
            assert (await client.get("/plans")).json() == {"plans": []}
            assert (await client.post("/plans/memory/run", json={})).status_code == 404

    asyncio.run(serving())


def test_two_plans_are_compared_and_a_text_that_is_none_is_refused(tmp_path: Path) -> None:
    async def serving() -> None:
        async with asking(tmp_path) as client:
            plans = {"first": 's1 = quick(a="x")', "second": 's1 = quick(a="y")'}
            compared = (await client.post("/plans/diff", json=plans)).json()
            assert not compared["same"]
            assert compared["steps"][0]["arguments"] == ["a"]
            refused = await client.post("/plans/diff", json={**plans, "second": "no plan"})
            assert refused.status_code == 422

    asyncio.run(serving())
