"""Pinned plans are listed, run and created over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from casewright.planner import parse_plan, pin_plan, read_pinned
from casewright.tools import Toolbox
from tests.serve.service.helpers import OTHER, served
from tests.serve.service.in_process import service_client
from tests.serve.service.server_process import tools

JSON = {"Content-Type": "application/json"}
PINNED: dict[str, Any] = {
    "question": "memory of my phone",
    "plan": 's1 = quick(a="phone")\ns2 = quick(a=s1.value)',
    "parameters": {"what": "phone"},
}
Scenario = Callable[[httpx.AsyncClient], Awaitable[None]]


def pin_plans(folder: Path) -> Path:
    """Pin a plan with two steps and a plan that waits; return the folder."""
    plan = parse_plan('s1 = quick(a="phone")\ns2 = quick(a=s1.value)')
    toolbox = Toolbox(tools(folder / "log"))
    pin_plan("memory", "memory of my phone", plan, toolbox, {"what": "phone"}).save(folder)
    wait = parse_plan("s1 = blocking(b=7)")
    pin_plan("wait", "wait 7 seconds", wait, toolbox, {"seconds": 7}).save(folder)
    return folder


def run_with_plans(folder: Path, scenario: Scenario) -> None:
    async def serving() -> None:
        async with service_client(folder, plans_folder=pin_plans(folder)) as client:
            await scenario(client)

    asyncio.run(serving())


def test_a_pinned_plan_is_listed_and_runs_with_a_value_of_its_parameter(tmp_path: Path) -> None:
    async def scenario(client: httpx.AsyncClient) -> None:
        plan, _ = (await client.get("/plans")).json()["plans"]
        assert (plan["parameters"], plan["differences"]) == ({"what": "phone"}, [])
        body = {"with": {"what": 'tablet") {what}'}, "thread_id": "t"}
        answer = (await client.post("/plans/memory/run", json=body)).json()
        assert answer["plan"].startswith('s1 = quick(a="tablet\\") {what}")')
        assert answer["planner"]["name"] == "pinned:memory"
        assert [step["status"] for step in answer["steps"]] == ["done", "done"]
        thread = (await client.get("/threads/t")).json()
        assert thread["question"] == 'memory of my tablet") {what}'

    run_with_plans(tmp_path, scenario)


def test_run_of_a_pinned_plan_obeys_a_budget_and_waits_for_approval(tmp_path: Path) -> None:
    async def scenario(client: httpx.AsyncClient) -> None:
        limited = await client.post("/plans/memory/run", json={"budget": {"calls": 1}})
        assert len(limited.json()["steps"]) == 1
        body = {"approve": "always", "thread_id": "t"}
        waiting = await client.post("/plans/memory/run", json=body)
        assert waiting.status_code == 202
        (question,) = waiting.json()["questions"]
        replies = {"replies": {question["id"]: "yes"}}
        answer = (await client.post("/threads/t/resume", json=replies)).json()
        assert [step["status"] for step in answer["steps"]] == ["done", "done"]

    run_with_plans(tmp_path, scenario)


def test_unknown_plans_wrong_values_and_changed_tools_are_refused(tmp_path: Path) -> None:
    async def scenario(client: httpx.AsyncClient) -> None:
        for path, body, status in (
            ("/plans/other/run", {}, 404),
            ("/plans/memory/run", {"with": {"what": 7}}, 422),
            ("/plans/memory/run", {"with": {"whom": "x"}}, 422),
            ("/plans/memory/run", {"with": {"what": " " * 9000}}, 422),
            ("/plans/memory/run", {"with": {"what": "\ud800"}}, 422),
            ("/plans/wait/run", {"with": {"seconds": 10**30}}, 422),
        ):
            content = json.dumps(body)
            response = await client.post(path, content=content, headers=JSON)
            assert response.status_code == status, response.text
        file = tmp_path / "memory.toml"
        file.write_text(file.read_text().replace("fingerprint = ", 'fingerprint = "other" # '))
        response = await client.post("/plans/memory/run", json={})
        assert response.status_code == 409
        assert "quick" in response.json()["detail"]
        file.write_text("x" * 70_000)
        response = await client.post("/plans/memory/run", json={})
        assert response.status_code == 422
        assert str(tmp_path) not in response.text
        (plan,) = (await client.get("/plans")).json()["plans"]
        assert plan["name"] == "wait"

    run_with_plans(tmp_path, scenario)


def test_service_without_a_plans_folder_has_no_pinned_plans(tmp_path: Path) -> None:
    async def serving() -> None:
        async with service_client(tmp_path) as client:
            assert (await client.get("/plans")).json() == {"plans": []}
            assert (await client.post("/plans/memory/run", json={})).status_code == 404

    asyncio.run(serving())


def test_route_diff_compares_two_plans_and_refuses_an_invalid_plan(tmp_path: Path) -> None:
    async def serving() -> None:
        async with service_client(tmp_path) as client:
            plans = {"first": 's1 = quick(a="x")', "second": 's1 = quick(a="y")'}
            difference = (await client.post("/plans/diff", json=plans)).json()
            assert not difference["same"]
            assert difference["steps"][0]["arguments"] == ["a"]
            response = await client.post("/plans/diff", json={**plans, "second": "no plan"})
            assert response.status_code == 422

    asyncio.run(serving())


def test_plan_pinned_over_http_runs_and_its_file_can_be_read(tmp_path: Path) -> None:
    options = {"plans_folder": str(tmp_path / "plans"), "pin_plans": True}
    with served(tmp_path, **options) as server, server.client() as client:
        assert client.get("/about").json()["pinning"]
        response = client.put("/plans/memory/pin", json=PINNED)
        assert (response.status_code, response.json()["parameters"]) == (201, {"what": "phone"})
        with server.client(OTHER) as other:
            answer = other.post("/plans/memory/run", json={"with": {"what": "tablet"}}).json()
        assert answer["plan"].startswith('s1 = quick(a="tablet")')
    toolbox = Toolbox(tools(tmp_path / "log"))
    pinned = read_pinned(tmp_path / "plans", "memory")
    assert pinned == pin_plan(
        "memory", PINNED["question"], parse_plan(PINNED["plan"]), toolbox, PINNED["parameters"]
    )


def run_with_pinning(folder: Path, scenario: Scenario, **options: Any) -> None:
    async def serving() -> None:
        all_options = {"plans_folder": folder / "plans", "pin_plans": True, **options}
        async with service_client(folder, **all_options) as client:
            await scenario(client)

    asyncio.run(serving())


def test_existing_pinned_plan_is_replaced_only_on_request(tmp_path: Path) -> None:
    async def scenario(client: httpx.AsyncClient) -> None:
        requests = [client.put("/plans/memory/pin", json=PINNED) for _ in range(8)]
        codes = [response.status_code for response in await asyncio.gather(*requests)]
        assert sorted(codes) == [201, *[409] * 7]
        other = {"question": "hello", "plan": "s1 = no_evidence()"}
        assert (await client.put("/plans/memory/pin", json=other)).status_code == 409
        (plan,) = (await client.get("/plans")).json()["plans"]
        assert plan["question"] == "memory of my {what}"
        response = await client.put("/plans/memory/pin", json={**other, "replace": True})
        assert (response.status_code, response.json()["question"]) == (200, "hello")
        (plan,) = (await client.get("/plans")).json()["plans"]
        assert plan["plan"] == "s1 = no_evidence()"

    run_with_pinning(tmp_path, scenario)
    assert [file.name for file in (tmp_path / "plans").iterdir()] == ["memory.toml"]


def test_pinning_a_file_for_changed_tools_is_refused_with_the_difference(
    tmp_path: Path,
) -> None:
    async def scenario(client: httpx.AsyncClient) -> None:
        text = (pin_plans(tmp_path) / "memory.toml").read_text()
        assert (await client.put("/plans/same/pin", json={"file": text})).status_code == 201
        changed = text.replace('description = "', 'description = "Formerly: ')
        response = await client.put("/plans/other/pin", json={"file": changed})
        assert response.status_code == 409
        assert 'quick: its description was "Formerly: ' in response.json()["detail"]
        (plan,) = (await client.get("/plans")).json()["plans"]
        assert (plan["name"], plan["question"]) == ("same", "memory of my {what}")

    run_with_pinning(tmp_path, scenario)


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("memory", {"question": "memory of my phone"}),
        ("memory", {**PINNED, "file": "format = 1"}),
        ("memory", {**PINNED, "plan": "s1 = delete()"}),
        ("memory", {**PINNED, "plan": "no plan"}),
        ("memory", {**PINNED, "parameters": {"what": "lathe"}}),
        ("memory", {**PINNED, "parameters": {f"p{n}": "phone" for n in range(33)}}),
        ("memory", {**PINNED, "question": "x" * 8001}),
        ("memory", {**PINNED, "replace": "yes"}),
        ("memory", {"file": "format = 2"}),
        ("memory", {"file": "x" * 65_537}),
        ("a.b", PINNED),
        ("..%2Fmemory", PINNED),
        ("a" * 65, PINNED),
    ],
)
def test_invalid_pinned_plan_is_refused_and_leaves_no_file(
    tmp_path: Path, name: str, body: Any
) -> None:
    async def scenario(client: httpx.AsyncClient) -> None:
        response = await client.put(f"/plans/{name}/pin", json=body)
        assert response.status_code in (404, 422), response.text
        assert str(tmp_path) not in response.text

    run_with_pinning(tmp_path, scenario)
    assert not list(tmp_path.rglob("*.toml*"))


def test_number_of_pinned_plans_in_a_folder_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("casewright.serve.service.plan_routes.MAX_PLANS", 2)

    async def scenario(client: httpx.AsyncClient) -> None:
        responses = [await client.put(f"/plans/p{n}/pin", json=PINNED) for n in range(3)]
        assert [response.status_code for response in responses] == [201, 201, 422]
        replaced = await client.put("/plans/p1/pin", json={**PINNED, "replace": True})
        assert replaced.status_code == 200

    run_with_pinning(tmp_path, scenario)


@pytest.mark.parametrize("options", [{"pin_plans": False}, {"plans_folder": None}])
def test_pinning_is_refused_unless_the_operator_allows_it(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    async def scenario(client: httpx.AsyncClient) -> None:
        assert not (await client.get("/about")).json()["pinning"]
        response = await client.put("/plans/memory/pin", json=PINNED)
        assert (response.status_code, response.headers["content-type"]) == (
            409,
            "application/problem+json",
        )
        response = await client.put("/plans/memory/pin", json=PINNED, headers={"Authorization": ""})
        assert response.status_code == 401

    run_with_pinning(tmp_path, scenario, **options)
    assert not (tmp_path / "plans").exists()
