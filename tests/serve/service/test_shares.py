"""No tenant can use all places for requests or all threads of tools."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.serve.service.helpers import OTHER, QUICK, Served, events_of, plan, served
from tests.support.waiting import until


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Yield a service with two slots for questions and four threads for tools."""
    with served(tmp_path_factory.mktemp("shared"), max_concurrency=2, max_tool_threads=4) as server:
        yield server


def count_threads(server: Served) -> int:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    match = re.search(r"Threads:\s*(\d+)", status)
    assert match is not None
    return int(match[1])


def test_busy_tenant_leaves_places_for_requests_of_another_tenant(shared: Served) -> None:
    with shared.client() as client, shared.client(OTHER) as other, ThreadPoolExecutor(8) as pool:
        requests = [pool.submit(client.post, "/ask", json=plan("s1 = slow(b=2)")) for _ in range(8)]
        until(lambda: sum(request.done() for request in requests) == 6)
        assert [request.result().status_code for request in requests if request.done()] == [503] * 6
        for _ in range(3):
            assert other.post("/ask", json={"question": QUICK}).status_code == 200
        assert not all(request.done() for request in requests), "the tenant was not busy"
        assert sorted(request.result().status_code for request in requests) == [200] * 2 + [503] * 6


def test_abandoned_tool_calls_are_limited_and_leave_threads_for_another_tenant(
    shared: Served,
) -> None:
    with shared.client() as client, shared.client(OTHER) as other:
        assert client.post("/ask", json={"question": QUICK}).status_code == 200
        before = count_threads(shared)
        refused = 0
        for _ in range(12):
            body = plan("s1 = blocking(b=4); s2 = blocking(b=4); s3 = blocking(b=4)")
            with suppress(httpx.ReadTimeout):
                refused += client.post("/ask", json=body, timeout=0.3).status_code == 503
        assert count_threads(shared) <= before + 4
        assert refused > 3
        response = client.post("/ask", json={"question": QUICK})
        assert response.status_code == 503
        assert response.headers["retry-after"] == "1"
        with client.stream("POST", "/ask/stream", json={"question": QUICK}) as stream:
            assert events_of(stream)[-1][1]["status"] == 503
        assert other.post("/ask", json={"question": QUICK}).status_code == 200
        # The slots are free after the threads have ended.
        until(lambda: client.post("/ask", json={"question": QUICK}).status_code == 200)
