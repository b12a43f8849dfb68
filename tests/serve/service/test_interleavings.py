"""The service's runs in any order of requests, repetitions, faults and replies."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from langgraph.types import interrupt
from starlette.responses import Response

from casewright.graph import ExtractiveGenerator
from casewright.serve.service.models import AskBody, ResumeBody
from casewright.serve.service.options import Parts, ServiceOptions
from casewright.serve.service.problems import RefusedError
from casewright.serve.service.routes import reply
from casewright.serve.service.runs import Runs, Waiting
from casewright.tools import CallContext, Toolbox
from tests.graph.helpers import Given, tool
from tests.serve.service.server_process import QuestionPlanner
from tests.support.examples import at_most
from tests.support.faulty_saver import Disk, FaultySaver
from tests.support.virtual_loop import VirtualLoop

PLACES = 3
PLANS = (
    "s1 = works(); s2 = works(a=s1.value); s3 = works(a=s1.value, b=s2.value)",
    "s1 = works(); s2 = asks(a=s1.value); s3 = works(a=s2.value)",
    "s1 = asks(); s2 = works(); s3 = asks(a=s1.value, b=s2.value)",
)
TENANTS = st.sampled_from(["acme", "other"])
THREADS = st.sampled_from([None, "a", "b"])
KEYS = st.sampled_from([None, "k1", "k2"])


@dataclass
class Called:
    """A call of a tool, which ends as the test says."""

    context: CallContext
    ends: asyncio.Future[str]


@dataclass
class Asked:
    """A request of a client.

    Attributes:
        tenant: Whose.
        repeats: What it has in common with its repetitions; ``None`` without a key.
        work: Ends with the response.
    """

    tenant: str
    repeats: tuple[Any, ...] | None
    work: asyncio.Task[Response]


class Clients(RuleBasedStateMachine):
    """Clients of two tenants, with two threads each."""

    @initialize()
    def begin(self) -> None:
        self.loop = VirtualLoop()
        self.disk = Disk()
        self.calls: list[Called] = []
        self.asked: list[Asked] = []
        self.returned: dict[tuple[Any, ...], bytes] = {}
        self.numbers = 0
        tools = [tool("works", None, self._works), tool("asks", None, self._asks)]
        parts = Parts("tests", Toolbox(tools), QuestionPlanner(), ExtractiveGenerator())
        options = ServiceOptions(max_concurrency=PLACES, threads_file=Path("none"))
        self.runs = Runs(parts, options, FaultySaver(self.disk), None)

    async def _works(self, given: Given, context: CallContext) -> str:
        kept = [row["value"] for one in self.disk.finished for row in one["rows"]]
        again = any(value.startswith(f"{context.key}|") for value in kept)
        assert not again, "a finished step was repeated"
        for value in given.values():
            assert value.startswith(f"{context.run_id}:"), "a result of another run"
        call = Called(context, self.loop.create_future())
        self.calls.append(call)
        return await call.ends

    async def _asks(self, given: Given, context: CallContext) -> str:
        value = await self._works(given, context)
        return f"{value}, {interrupt(context.step)}"

    @property
    def pending(self) -> list[Called]:
        return [call for call in self.calls if not call.ends.done()]

    @property
    def open(self) -> list[Asked]:
        return [one for one in self.asked if not one.work.done()]

    @rule(tenant=TENANTS, thread=THREADS, key=KEYS, plan=st.sampled_from(PLANS))
    def asks(self, tenant: str, thread: str | None, key: str | None, plan: str) -> None:
        self.numbers += 1
        # A repeated request asks the same.
        number = key or str(self.numbers)
        plan = PLANS[0] if key else plan
        body = AskBody(question=f"{number} plan: {plan}", scope={}, thread_id=thread)
        attempt = self.runs.attempt(key, tenant, thread, "ask", body.model_dump())

        async def work() -> Response:
            return response_of(await self.runs.ask(body, tenant, attempt))

        repeats = None if key is None else (tenant, key, thread)
        self._sent(Asked(tenant, repeats, self._task(self.runs.repeats.once(attempt, work))))

    @rule(tenant=TENANTS, thread=st.sampled_from(["a", "b"]), key=KEYS, replies=st.booleans())
    def resumes(self, tenant: str, thread: str, key: str | None, replies: bool) -> None:

        async def work() -> Response:
            said: dict[str, Any] = {"scope": {}}
            found = await self.runs.state(self.runs.thread_key(thread, tenant))
            if replies and found is not None and found.questions:
                said |= {"replies": {found.questions[0]["id"]: "yes"}}
            body = ResumeBody.model_validate(said)
            attempt = self.runs.attempt(key, tenant, thread, "resume", body.model_dump())

            async def resume() -> Response:
                return response_of(await self.runs.resume(thread, body, tenant, attempt))

            return await self.runs.repeats.once(attempt, resume)

        self._sent(Asked(tenant, None, self._task(work())))

    @rule(tenant=TENANTS, thread=st.sampled_from(["a", "b"]))
    def forgets(self, tenant: str, thread: str) -> None:
        async def work() -> Response:
            await self.runs.forget(thread, tenant)
            # What its requests returned is forgotten with it.
            for repeated in [one for one in self.returned if one[0::2] == (tenant, thread)]:
                del self.returned[repeated]
            return Response()

        self._sent(Asked(tenant, None, self._task(work())))

    @precondition(lambda self: bool(self.pending))
    @rule(which=st.integers(0, 9), well=st.sampled_from([True, True, True, False]))
    def call_ends(self, which: int, well: bool) -> None:
        call = self.pending[which % len(self.pending)]
        if well:
            call.ends.set_result(f"{call.context.key}|{call.context.scope['tenant']}")
        else:
            call.ends.set_exception(ValueError("no answer"))
        self._settled()

    @precondition(lambda self: bool(self.open))
    @rule(which=st.integers(0, 9))
    def client_goes(self, which: int) -> None:
        self.open[which % len(self.open)].work.cancel()
        self._settled()

    @rule(seconds=st.sampled_from([0.1, 25.0]))
    def time_passes(self, seconds: float) -> None:
        self.loop.let_pass(seconds)
        self._settled()

    @rule(writes=st.integers(0, 6))
    def disk_will_fail(self, writes: int) -> None:
        self.disk.fails_in = writes

    @invariant()
    def no_step_is_called_twice_at_a_time(self) -> None:
        keys = Counter(call.context.key for call in self.pending)
        assert not keys or max(keys.values()) == 1
        runs = {call.context.run_id for call in self.pending}
        assert len(runs) <= min(PLACES, len(self.open)), "work that nobody waits for"

    def _task(self, work: Any) -> asyncio.Task[Response]:
        return self.loop.create_task(work)

    def _sent(self, request: Asked) -> None:
        self.asked.append(request)
        self._settled()

    def _settled(self) -> None:
        self.loop.settle()
        ended, self.asked = [one for one in self.asked if one.work.done()], self.open
        for one in ended:
            if one.work.cancelled():
                continue
            if (error := one.work.exception()) is not None:
                clear = isinstance(error, RefusedError | sqlite3.OperationalError)
                assert clear, repr(error)
            else:
                self._judge(one, one.work.result())

    def _judge(self, request: Asked, response: Response) -> None:
        if request.repeats is not None:
            before = self.returned.setdefault(request.repeats, bytes(response.body))
            assert bytes(response.body) == before, "a repeated request returned something else"
        if response.status_code != 200 or not response.body:
            return
        answer = json.loads(bytes(response.body))
        ids = {item["id"] for item in answer["evidence"]}
        assert set(answer["citations"]) <= ids
        assert answer["citations"] or not ids
        for step in answer["steps"]:
            for row in step["rows"]:
                own = f"{answer['run_id']}:{step['step']}|{request.tenant}"
                assert row["value"].startswith(own), "a result of another run, step or tenant"

    def teardown(self) -> None:
        """Whatever happened, every thread comes to its answer, and all places are free."""
        if not hasattr(self, "loop"):
            return
        self.disk.fails_in = -1
        for one in self.open:
            one.work.cancel()
        self.loop.let_pass(1)
        self._settled()
        assert not self.pending, "a call was left behind"
        assert not self.runs.locks.keys, "a thread was left locked"
        for tenant in ("acme", "other"):
            for thread in ("a", "b"):
                self._ended(tenant, thread)
        for number in range(PLACES):
            self.asks(f"tenant{number}", None, None, PLANS[0])
        assert len(self.pending) == PLACES, "a place was not given back"
        for one in self.open:
            one.work.cancel()
        self.loop.let_pass(1)
        self.runs.close()
        self.loop.close()

    def _ended(self, tenant: str, thread: str) -> None:
        key = self.runs.thread_key(thread, tenant)
        for _ in range(20):
            found = self.loop.run_until_complete(self.runs.state(key))
            if found is None or found.answered:
                return
            self.resumes(tenant, thread, None, replies=True)
            while self.pending:
                self.call_ends(0, True)
        raise AssertionError("the thread has no end")


def response_of(ended: Any) -> Response:
    if isinstance(ended, Waiting):
        return reply({"questions": ended.questions}, 202)
    return reply(ended)


def run_clients(examples: int, steps: int) -> None:
    run_state_machine_as_test(
        Clients,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_no_order_of_requests_mixes_runs_or_leaves_work_behind() -> None:
    run_clients(at_most(40), 20)


@pytest.mark.slow
def test_no_long_order_of_requests_mixes_runs_or_leaves_work_behind() -> None:
    run_clients(600, 60)
