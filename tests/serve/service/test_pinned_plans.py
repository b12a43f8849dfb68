"""Pinned plans are listed and run over HTTP, through the same graph as questions."""

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
        async with service_client(folder, plans_folder=pin(folder)) as client:
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


def test_run_of_a_pinned_plan_obeys_a_budget_and_waits_for_approval(tmp_path: Path) -> None:
    async def use(client: httpx.AsyncClient) -> None:
        one = await client.post("/plans/memory/run", json={"budget": {"calls": 1}})
        assert len(one.json()["steps"]) == 1
        body = {"approve": "always", "thread_id": "t"}
        waiting = await client.post("/plans/memory/run", json=body)
        assert waiting.status_code == 202
        (question,) = waiting.json()["questions"]
        sent = {"replies": {question["id"]: "yes"}}
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
            compared = (await client.post("/plans/diff", json=plans)).json()
            assert not compared["same"]
            assert compared["steps"][0]["arguments"] == ["a"]
            refused = await client.post("/plans/diff", json={**plans, "second": "no plan"})
            assert refused.status_code == 422

    asyncio.run(serving())


def test_plan_pinned_over_http_runs_and_its_file_can_be_read(tmp_path: Path) -> None:
    kept = {"plans_folder": str(tmp_path / "plans"), "pin_plans": True}
    with served(tmp_path, **kept) as server, server.client() as client:
        assert client.get("/about").json()["pinning"]
        made = client.put("/plans/memory/pin", json=PINNED)
        assert (made.status_code, made.json()["parameters"]) == (201, {"what": "phone"})
        with server.client(OTHER) as other:
            ran = other.post("/plans/memory/run", json={"with": {"what": "tablet"}}).json()
        assert ran["plan"].startswith('s1 = quick(a="tablet")')
    toolbox = Toolbox(tools(tmp_path / "log"))
    pinned = read_pinned(tmp_path / "plans", "memory")
    assert pinned == pin_plan(
        "memory", PINNED["question"], parse_plan(PINNED["plan"]), toolbox, PINNED["parameters"]
    )


def pinning(folder: Path, use: Use, **options: Any) -> None:
    async def serving() -> None:
        allowed = {"plans_folder": folder / "plans", "pin_plans": True, **options}
        async with service_client(folder, **allowed) as client:
            await use(client)

    asyncio.run(serving())


def test_existing_pinned_plan_is_replaced_only_on_request(tmp_path: Path) -> None:
    async def use(client: httpx.AsyncClient) -> None:
        many = [client.put("/plans/memory/pin", json=PINNED) for _ in range(8)]
        answered = [reply.status_code for reply in await asyncio.gather(*many)]
        assert sorted(answered) == [201, *[409] * 7]
        other = {"question": "hello", "plan": "s1 = no_evidence()"}
        assert (await client.put("/plans/memory/pin", json=other)).status_code == 409
        (listed,) = (await client.get("/plans")).json()["plans"]
        assert listed["question"] == "memory of my {what}"
        replaced = await client.put("/plans/memory/pin", json={**other, "replace": True})
        assert (replaced.status_code, replaced.json()["question"]) == (200, "hello")
        (listed,) = (await client.get("/plans")).json()["plans"]
        assert listed["plan"] == "s1 = no_evidence()"

    pinning(tmp_path, use)
    assert [file.name for file in (tmp_path / "plans").iterdir()] == ["memory.toml"]


def test_pinning_a_file_for_changed_tools_is_refused_with_the_difference(
    tmp_path: Path,
) -> None:
    async def use(client: httpx.AsyncClient) -> None:
        text = (pin(tmp_path) / "memory.toml").read_text()
        assert (await client.put("/plans/same/pin", json={"file": text})).status_code == 201
        changed = text.replace('description = "', 'description = "Formerly: ')
        refused = await client.put("/plans/other/pin", json={"file": changed})
        assert refused.status_code == 409
        assert 'quick: its description was "Formerly: ' in refused.json()["detail"]
        (listed,) = (await client.get("/plans")).json()["plans"]
        assert (listed["name"], listed["question"]) == ("same", "memory of my {what}")

    pinning(tmp_path, use)


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
    async def use(client: httpx.AsyncClient) -> None:
        refused = await client.put(f"/plans/{name}/pin", json=body)
        assert refused.status_code in (404, 422), refused.text
        assert str(tmp_path) not in refused.text

    pinning(tmp_path, use)
    assert not list(tmp_path.rglob("*.toml*"))


def test_number_of_pinned_plans_in_a_folder_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("casewright.serve.service.plan_routes.MAX_PLANS", 2)

    async def use(client: httpx.AsyncClient) -> None:
        replies = [await client.put(f"/plans/p{n}/pin", json=PINNED) for n in range(3)]
        assert [reply.status_code for reply in replies] == [201, 201, 422]
        again = await client.put("/plans/p1/pin", json={**PINNED, "replace": True})
        assert again.status_code == 200

    pinning(tmp_path, use)


@pytest.mark.parametrize("off", [{"pin_plans": False}, {"plans_folder": None}])
def test_pinning_is_refused_unless_the_operator_allows_it(
    tmp_path: Path, off: dict[str, Any]
) -> None:
    async def use(client: httpx.AsyncClient) -> None:
        assert not (await client.get("/about")).json()["pinning"]
        refused = await client.put("/plans/memory/pin", json=PINNED)
        assert (refused.status_code, refused.headers["content-type"]) == (
            409,
            "application/problem+json",
        )
        without = await client.put("/plans/memory/pin", json=PINNED, headers={"Authorization": ""})
        assert without.status_code == 401

    pinning(tmp_path, use, **off)
    assert not (tmp_path / "plans").exists()
