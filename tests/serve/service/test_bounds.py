"""Limits inside the service: threads in memory, reads of its stores, requests."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from casewright.graph import ExtractiveGenerator
from casewright.serve.service.limits import Admission
from casewright.serve.service.models import AskBody
from casewright.serve.service.options import Parts, ServiceOptions
from casewright.serve.service.problems import RefusedError
from casewright.serve.service.routes import _wait_for_stores, state_of
from casewright.serve.service.runs import Runs
from casewright.tools import Toolbox
from tests.serve.service.helpers import QUICK
from tests.serve.service.server_process import QuestionPlanner, tools

TENANT = "acme"


async def make_runs(folder: Path) -> Runs:
    toolbox = Toolbox(tools(folder / "log"))
    parts = Parts("tests", toolbox, QuestionPlanner(), ExtractiveGenerator())
    return Runs(parts, ServiceOptions(), InMemorySaver(), None)


def test_thread_in_memory_keeps_only_its_last_run(tmp_path: Path) -> None:
    async def count_checkpoints() -> list[int]:
        runs = await make_runs(tmp_path)
        body = AskBody(question=QUICK, scope={}, thread_id="t")
        key = runs.thread_key("t", TENANT)
        counts = []
        for stream in (False, False, True):
            if stream:
                _ = [event async for event in runs.stream(body, TENANT)]
            else:
                await runs.ask(body, TENANT)
            config: Any = {"configurable": {"thread_id": key}}
            counts.append(len([checkpoint async for checkpoint in runs.saver.alist(config)]))
        runs.close()
        return counts

    first, *later_counts = asyncio.run(count_checkpoints())
    assert first > 1
    assert later_counts == [first, first]


def test_thread_deleted_while_it_runs_is_unknown_afterwards(tmp_path: Path) -> None:
    async def delete_running_thread() -> None:
        runs = await make_runs(tmp_path)
        request = asyncio.ensure_future(
            runs.ask(AskBody(question="plan: s1 = slow(b=0.5)", scope={}, thread_id="t"), TENANT)
        )
        await asyncio.sleep(0.2)
        key = runs.thread_key("t", TENANT)
        assert (await state_of(runs, "t", key))["status"] == "running"
        await runs.saver.adelete_thread(key)
        await request
        with pytest.raises(RefusedError, match="no such thread"):
            await state_of(runs, "t", key)
        runs.close()

    asyncio.run(delete_running_thread())


class SlowStore:
    """A slow store that counts all its reads and its simultaneous reads."""

    def __init__(self) -> None:
        self.reads = self.current = self.peak = 0

    def count(self) -> int:
        self.reads += 1
        self.current += 1
        self.peak = max(self.peak, self.current)
        time.sleep(0.1)
        self.current -= 1
        return 0

    def all(self, tenant: str) -> list[Any]:
        self.count()
        return []


def test_simultaneous_readiness_checks_share_one_read_of_the_stores() -> None:
    store = SlowStore()
    runs: Any = SimpleNamespace(parts=SimpleNamespace(stores={"one": store}), answer_store=None)
    request: Any = SimpleNamespace(app=SimpleNamespace(state=SimpleNamespace()))

    async def check_readiness() -> None:
        # A check that is abandoned does not end the read.
        with suppress(TimeoutError):
            await asyncio.wait_for(_wait_for_stores(request, runs), 0.02)
        await asyncio.gather(*(_wait_for_stores(request, runs) for _ in range(10)))
        assert store.reads == 1
        await _wait_for_stores(request, runs)
        assert store.reads == 2

    asyncio.run(check_readiness())


def test_stored_answers_of_a_tenant_are_read_one_at_a_time(tmp_path: Path) -> None:
    async def list_answers() -> SlowStore:
        runs = await make_runs(tmp_path)
        store = SlowStore()
        runs.answer_store = cast("Any", store)
        # An abandoned request frees no slot, since its thread still reads.
        with suppress(TimeoutError):
            await asyncio.wait_for(runs.list_retained(TENANT), 0.02)
        assert await asyncio.gather(*(runs.list_retained(TENANT) for _ in range(3))) == [
            [],
            [],
            [],
        ]
        runs.close()
        return store

    store = asyncio.run(list_answers())
    assert store.reads == 4
    assert store.peak == 1


def test_number_of_requests_without_a_question_is_limited_separately() -> None:
    finish = asyncio.Event()
    statuses: list[int] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] != "/healthz":
            await finish.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def request(admission: Admission, path: str, method: str = "GET") -> None:
        messages = [{"type": "http.request", "body": b"", "more_body": False}]

        async def receive() -> Any:
            if messages:
                return messages.pop()
            return await asyncio.Event().wait()

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        scope: Any = {"type": "http", "method": method, "path": path, "headers": []}
        scope["state"] = {"tenant": "acme"}  # as after authentication
        await admission(scope, receive, send)

    async def send_requests() -> None:
        admission = Admission(
            app, options=ServiceOptions(max_body_bytes=9, max_concurrency=1, request_seconds=9)
        )
        waiting = [asyncio.ensure_future(request(admission, "/cases")) for _ in range(2)]
        await asyncio.sleep(0.05)
        await request(admission, "/threads/t", "DELETE")
        await request(admission, "/healthz")
        assert statuses == [503, 200]
        # Questions have slots of their own.
        waiting.append(asyncio.ensure_future(request(admission, "/ask", "POST")))
        await asyncio.sleep(0.05)
        finish.set()
        await asyncio.gather(*waiting)
        assert statuses == [503, 200, 200, 200, 200]

    asyncio.run(send_requests())
