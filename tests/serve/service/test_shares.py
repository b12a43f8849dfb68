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
    """Two places for questions and four for tools' threads, between two tenants."""
    with served(
        tmp_path_factory.mktemp("shared"), max_concurrency=2, max_tool_threads=4
    ) as running:
        yield running


def threads_of(server: Served) -> int:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    found = re.search(r"Threads:\s*(\d+)", status)
    assert found is not None
    return int(found[1])


def test_busy_tenant_leaves_places_for_requests_of_another_tenant(shared: Served) -> None:
    with shared.client() as greedy, shared.client(OTHER) as other, ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(greedy.post, "/ask", json=plan("s1 = slow(b=2)")) for _ in range(8)]
        until(lambda: sum(one.done() for one in asked) == 6)
        assert [one.result().status_code for one in asked if one.done()] == [503] * 6
        for _ in range(3):
            assert other.post("/ask", json={"question": QUICK}).status_code == 200
        assert not all(one.done() for one in asked), "nobody was in the way"
        assert sorted(one.result().status_code for one in asked) == [200] * 2 + [503] * 6


def test_abandoned_tool_calls_are_limited_and_leave_threads_for_another_tenant(
    shared: Served,
) -> None:
    with shared.client() as client, shared.client(OTHER) as other:
        assert client.post("/ask", json={"question": QUICK}).status_code == 200
        before = threads_of(shared)
        refused = 0
        for _ in range(12):
            asked = plan("s1 = blocking(b=4); s2 = blocking(b=4); s3 = blocking(b=4)")
            with suppress(httpx.ReadTimeout):
                refused += client.post("/ask", json=asked, timeout=0.3).status_code == 503
        assert threads_of(shared) <= before + 4
        assert refused > 3
        reply = client.post("/ask", json={"question": QUICK})
        assert reply.status_code == 503
        assert reply.headers["retry-after"] == "1"
        with client.stream("POST", "/ask/stream", json={"question": QUICK}) as streamed:
            assert events_of(streamed)[-1][1]["status"] == 503
        assert other.post("/ask", json={"question": QUICK}).status_code == 200
        # The places are free once the threads have ended.
        until(lambda: client.post("/ask", json={"question": QUICK}).status_code == 200)
