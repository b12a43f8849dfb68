"""`/metrics` returns counts for Prometheus, with a limited set of labels."""

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


async def read_samples(client: httpx.AsyncClient) -> Mapping[str, float]:
    """Return the values of samples by the name and label values of each sample."""
    response = await client.get("/metrics")
    assert response.status_code == 200, response.text
    return {
        sample.name + "".join(f" {value}" for value in sample.labels.values()): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
        if "le" not in sample.labels
    }


async def test_phases_tool_calls_and_requests_are_counted(tmp_path: Path) -> None:
    async with service_client(tmp_path) as client:
        await client.post("/ask", json=plan("s1 = quick(a=question);s2 = broken(a=s1.value)"))
        await client.post("/ask", json={**plan("s1 = asks(a=question)"), "thread_id": "visit"})
        await client.get("/threads/visit")
        samples = await read_samples(client)
    assert samples["casewright_requests_total /ask 200"] == 1
    assert samples["casewright_requests_total /ask 202"] == 1
    assert samples["casewright_requests_total /threads/{thread_id} 200"] == 1
    assert samples["casewright_tool_calls_total done quick"] == 1
    assert samples["casewright_tool_calls_total failed broken"] == 1
    # The waiting run is planned, but neither executed nor answered.
    counts = {"planning": 2, "execution": 1, "generation": 1}
    assert {phase: samples[f"casewright_phase_seconds_count {phase}"] for phase in counts} == counts


async def test_metrics_count_each_step_of_a_resumed_run_once(tmp_path: Path) -> None:
    body = {**plan("s1 = quick(a=question);s2 = asks(a=s1.value)"), "thread_id": "visit"}
    async with service_client(tmp_path) as client:
        question = (await client.post("/ask", json=body)).json()["questions"][0]
        replies = {"replies": {question["id"]: "red"}}
        assert (await client.post("/threads/visit/resume", json=replies)).status_code == 200
        samples = await read_samples(client)
    assert samples["casewright_tool_calls_total done quick"] == 1
    assert samples["casewright_tool_calls_total done asks"] == 1
    assert samples["casewright_phase_seconds_count planning"] == 1


async def test_metrics_require_a_token_and_count_refused_requests(tmp_path: Path) -> None:
    async with service_client(tmp_path) as client:
        invalid = {"Authorization": "Bearer nobody-0123456789"}
        assert (await client.get("/metrics", headers=invalid)).status_code == 401
        assert (await client.post("/ask", json={"question": 1})).status_code == 422
        samples = await read_samples(client)
    assert samples["casewright_refused_requests_total 401"] == 1
    assert samples["casewright_requests_total /metrics 401"] == 1
    assert samples["casewright_refused_requests_total 422"] == 1


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
        metrics.record_event({"event": "step_ended", "tool": tool, "status": "done"})
    sample = metrics.registry.get_sample_value
    assert sample("casewright_tool_calls_total", {"tool": "quick", "status": "done"}) == 1
    assert sample("casewright_tool_calls_total", {"tool": "hostile", "status": "done"}) is None


async def test_metrics_of_current_runs_and_abandoned_threads_rise_and_fall(tmp_path: Path) -> None:
    async with service_client(tmp_path) as client, asyncio.timeout(30):
        blocking = asyncio.ensure_future(client.post("/ask", json=plan("s1 = blocking(b=0.7)")))
        while not (await read_samples(client))["casewright_runs_in_flight"]:
            await asyncio.sleep(0.02)
        while not (await read_samples(client))["casewright_tool_threads"]:
            await asyncio.sleep(0.02)
        assert (await read_samples(client))["casewright_abandoned_tool_threads"] == 0
        blocking.cancel()
        while (samples := await read_samples(client))["casewright_runs_in_flight"]:
            await asyncio.sleep(0.02)
        assert samples["casewright_abandoned_tool_threads"] == 1
        while (await read_samples(client))["casewright_tool_threads"]:
            await asyncio.sleep(0.05)
        assert (await read_samples(client))["casewright_abandoned_tool_threads"] == 0
