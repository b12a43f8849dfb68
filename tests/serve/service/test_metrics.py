"""`/metrics`: what Prometheus scrapes, by whom, and with which labels."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from casewright.serve.service.metrics import Metrics
from tests.serve.service.helpers import plan
from tests.serve.service.in_process import service_client

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def values(client: httpx.AsyncClient) -> Mapping[str, float]:
    """Sample to value, each named as Prometheus writes it."""
    reply = await client.get("/metrics")
    assert reply.status_code == 200, reply.text
    return {
        sample.name + "".join(f" {value}" for value in sample.labels.values()): sample.value
        for family in text_string_to_metric_families(reply.text)
        for sample in family.samples
        if "le" not in sample.labels
    }


async def test_phases_tool_calls_and_requests_are_counted(tmp_path: Path) -> None:
    async with service_client(tmp_path) as client:
        await client.post("/ask", json=plan("s1 = quick(a=question);s2 = broken(a=s1.value)"))
        await client.post("/ask", json={**plan("s1 = asks(a=question)"), "thread_id": "visit"})
        await client.get("/threads/visit")
        seen = await values(client)
    assert seen["casewright_requests_total /ask 200"] == 1
    assert seen["casewright_requests_total /ask 202"] == 1
    assert seen["casewright_requests_total /threads/{thread_id} 200"] == 1
    assert seen["casewright_tool_calls_total done quick"] == 1
    assert seen["casewright_tool_calls_total failed broken"] == 1
    # The waiting run is planned, and neither executed nor answered.
    counts = {"planning": 2, "execution": 1, "generation": 1}
    assert {phase: seen[f"casewright_phase_seconds_count {phase}"] for phase in counts} == counts


async def test_metrics_count_each_step_of_a_resumed_run_once(tmp_path: Path) -> None:
    asked = {**plan("s1 = quick(a=question);s2 = asks(a=s1.value)"), "thread_id": "visit"}
    async with service_client(tmp_path) as client:
        question = (await client.post("/ask", json=asked)).json()["questions"][0]
        reply = {"replies": {question["id"]: "red"}}
        assert (await client.post("/threads/visit/resume", json=reply)).status_code == 200
        seen = await values(client)
    assert seen["casewright_tool_calls_total done quick"] == 1
    assert seen["casewright_tool_calls_total done asks"] == 1
    assert seen["casewright_phase_seconds_count planning"] == 1


async def test_metrics_require_a_token_and_count_refused_requests(tmp_path: Path) -> None:
    async with service_client(tmp_path) as client:
        nobody = {"Authorization": "Bearer nobody-0123456789"}
        assert (await client.get("/metrics", headers=nobody)).status_code == 401
        assert (await client.post("/ask", json={"question": 1})).status_code == 422
        seen = await values(client)
    assert seen["casewright_refused_requests_total 401"] == 1
    assert seen["casewright_requests_total /metrics 401"] == 1
    assert seen["casewright_refused_requests_total 422"] == 1


async def test_no_text_of_a_client_becomes_a_label(tmp_path: Path) -> None:
    async with service_client(tmp_path) as client:
        for number in range(20):
            await client.get(f"/threads/hostile-{number}")
            await client.get(f"/hostile-{number}")
            await client.post("/ask", json={"question": 'plan: s1 = quick(a="hostile")'})
        text = (await client.get("/metrics")).text
    assert "hostile" not in text
    assert 'casewright_requests_total{route="other",status="404"} 20.0' in text


def test_event_with_an_unknown_tool_adds_no_label() -> None:
    metrics = Metrics(["quick"])
    for tool in ("quick", "hostile"):
        metrics.count_event({"event": "step_ended", "tool": tool, "status": "done"})
    sample = metrics.registry.get_sample_value
    assert sample("casewright_tool_calls_total", {"tool": "quick", "status": "done"}) == 1
    assert sample("casewright_tool_calls_total", {"tool": "hostile", "status": "done"}) is None


async def test_metrics_of_current_runs_and_abandoned_threads_rise_and_fall(tmp_path: Path) -> None:
    async with service_client(tmp_path) as client, asyncio.timeout(30):
        blocking = asyncio.ensure_future(client.post("/ask", json=plan("s1 = blocking(b=0.7)")))
        while not (await values(client))["casewright_runs_in_flight"]:
            await asyncio.sleep(0.02)
        while not (await values(client))["casewright_tool_threads"]:
            await asyncio.sleep(0.02)
        assert (await values(client))["casewright_abandoned_tool_threads"] == 0
        blocking.cancel()
        while (seen := await values(client))["casewright_runs_in_flight"]:
            await asyncio.sleep(0.02)
        assert seen["casewright_abandoned_tool_threads"] == 1
        while (await values(client))["casewright_tool_threads"]:
            await asyncio.sleep(0.05)
        assert (await values(client))["casewright_abandoned_tool_threads"] == 0
