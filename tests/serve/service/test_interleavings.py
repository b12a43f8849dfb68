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
from casewright.serve.service.routes import json_response
from casewright.serve.service.runs import Runs, Waiting
from casewright.tools import CallContext, Toolbox
from tests.graph.helpers import Arguments, tool
from tests.serve.service.server_process import QuestionPlanner
from tests.support.examples import at_most
from tests.support.faulty_saver import Disk, FaultySaver
from tests.support.virtual_loop import VirtualLoop

SLOTS = 3
PLANS = (
    "s1 = works(); s2 = works(a=s1.value); s3 = works(a=s1.value, b=s2.value)",
    "s1 = works(); s2 = asks(a=s1.value); s3 = works(a=s2.value)",
    "s1 = asks(); s2 = works(); s3 = asks(a=s1.value, b=s2.value)",
)
TENANTS = st.sampled_from(["acme", "other"])
THREADS = st.sampled_from([None, "a", "b"])
KEYS = st.sampled_from([None, "k1", "k2"])


@dataclass
class ToolCall:
    """A call of a tool, whose result the test sets."""

    context: CallContext
    result: asyncio.Future[str]


@dataclass
class ClientRequest:
    """A request of a client.

    Attributes:
        tenant: The client's tenant.
        key: Equal for all repetitions of the request; ``None`` without an idempotency key.
        task: Returns the response.
    """

    tenant: str
    key: tuple[Any, ...] | None
    task: asyncio.Task[Response]


class Clients(RuleBasedStateMachine):
    """Clients of two tenants, with two threads each."""

    @initialize()
    def begin(self) -> None:
        self.loop = VirtualLoop()
        self.disk = Disk()
        self.calls: list[ToolCall] = []
        self.requests: list[ClientRequest] = []
        self.bodies: dict[tuple[Any, ...], bytes] = {}
        self.count = 0
        tools = [tool("works", None, self._works), tool("asks", None, self._asks)]
        parts = Parts("tests", Toolbox(tools), QuestionPlanner(), ExtractiveGenerator())
        options = ServiceOptions(max_concurrency=SLOTS, threads_file=Path("none"))
        self.runs = Runs(parts, options, FaultySaver(self.disk), None)

    async def _works(self, arguments: Arguments, context: CallContext) -> str:
        values = [row["value"] for step in self.disk.finished for row in step["rows"]]
        repeated = any(value.startswith(f"{context.key}|") for value in values)
        assert not repeated, "a finished step was repeated"
        for value in arguments.values():
            assert value.startswith(f"{context.run_id}:"), "a result of another run"
        call = ToolCall(context, self.loop.create_future())
        self.calls.append(call)
        return await call.result

    async def _asks(self, arguments: Arguments, context: CallContext) -> str:
        value = await self._works(arguments, context)
        return f"{value}, {interrupt(context.step)}"

    @property
    def pending(self) -> list[ToolCall]:
        return [call for call in self.calls if not call.result.done()]

    @property
    def unanswered(self) -> list[ClientRequest]:
        return [request for request in self.requests if not request.task.done()]

    @rule(tenant=TENANTS, thread=THREADS, key=KEYS, plan=st.sampled_from(PLANS))
    def client_asks(self, tenant: str, thread: str | None, key: str | None, plan: str) -> None:
        self.count += 1
        # Requests with the same key ask the same question.
        number = key or str(self.count)
        plan = PLANS[0] if key else plan
        body = AskBody(question=f"{number} plan: {plan}", scope={}, thread_id=thread)
        attempt = self.runs.attempt(key, tenant, thread, "ask", body.model_dump())

        async def work() -> Response:
            return response_of(await self.runs.ask(body, tenant, attempt))

        repeat_key = None if key is None else (tenant, key, thread)
        self._send(tenant, repeat_key, self.runs.repeats.once(attempt, work))

    @rule(tenant=TENANTS, thread=st.sampled_from(["a", "b"]), key=KEYS, replies=st.booleans())
    def client_resumes(self, tenant: str, thread: str, key: str | None, replies: bool) -> None:

        async def work() -> Response:
            fields: dict[str, Any] = {"scope": {}}
            state = await self.runs.state(self.runs.thread_key(thread, tenant))
            if replies and state is not None and state.questions:
                fields |= {"replies": {state.questions[0]["id"]: "yes"}}
            body = ResumeBody.model_validate(fields)
            attempt = self.runs.attempt(key, tenant, thread, "resume", body.model_dump())

            async def resume() -> Response:
                return response_of(await self.runs.resume(thread, body, tenant, attempt))

            return await self.runs.repeats.once(attempt, resume)

        self._send(tenant, None, work())

    @rule(tenant=TENANTS, thread=st.sampled_from(["a", "b"]))
    def client_deletes_thread(self, tenant: str, thread: str) -> None:
        async def work() -> Response:
            await self.runs.forget(thread, tenant)
            # The stored responses of the thread are deleted with it.
            for key in [key for key in self.bodies if key[0::2] == (tenant, thread)]:
                del self.bodies[key]
            return Response()

        self._send(tenant, None, work())

    @precondition(lambda self: bool(self.pending))
    @rule(index=st.integers(0, 9), succeeds=st.sampled_from([True, True, True, False]))
    def call_ends(self, index: int, succeeds: bool) -> None:
        call = self.pending[index % len(self.pending)]
        if succeeds:
            call.result.set_result(f"{call.context.key}|{call.context.scope['tenant']}")
        else:
            call.result.set_exception(ValueError("no answer"))
        self._settle()

    @precondition(lambda self: bool(self.unanswered))
    @rule(index=st.integers(0, 9))
    def client_disconnects(self, index: int) -> None:
        self.unanswered[index % len(self.unanswered)].task.cancel()
        self._settle()

    @rule(seconds=st.sampled_from([0.1, 25.0]))
    def time_passes(self, seconds: float) -> None:
        self.loop.advance(seconds)
        self._settle()

    @rule(writes=st.integers(0, 6))
    def disk_will_fail(self, writes: int) -> None:
        self.disk.fails_in = writes

    @invariant()
    def no_step_is_called_twice_at_a_time(self) -> None:
        keys = Counter(call.context.key for call in self.pending)
        assert not keys or max(keys.values()) == 1
        runs = {call.context.run_id for call in self.pending}
        assert len(runs) <= min(SLOTS, len(self.unanswered)), "work without a client"

    def _send(self, tenant: str, key: tuple[Any, ...] | None, work: Any) -> None:
        self.requests.append(ClientRequest(tenant, key, self.loop.create_task(work)))
        self._settle()

    def _settle(self) -> None:
        self.loop.settle()
        completed = [request for request in self.requests if request.task.done()]
        self.requests = self.unanswered
        for request in completed:
            if request.task.cancelled():
                continue
            if (error := request.task.exception()) is None:
                self._check_response(request, request.task.result())
            else:
                assert isinstance(error, RefusedError | sqlite3.OperationalError), repr(error)

    def _check_response(self, request: ClientRequest, response: Response) -> None:
        if request.key is not None:
            first = self.bodies.setdefault(request.key, bytes(response.body))
            assert bytes(response.body) == first, "a repeated request returned something else"
        if response.status_code != 200 or not response.body:
            return
        answer = json.loads(bytes(response.body))
        ids = {item["id"] for item in answer["evidence"]}
        assert set(answer["citations"]) <= ids
        assert answer["citations"] or not ids
        for step in answer["steps"]:
            for row in step["rows"]:
                prefix = f"{answer['run_id']}:{step['step']}|{request.tenant}"
                assert row["value"].startswith(prefix), "a result of another run, step or tenant"

    def teardown(self) -> None:
        """Check that every thread can be answered, and that all slots are free."""
        if not hasattr(self, "loop"):
            return
        self.disk.fails_in = -1
        for request in self.unanswered:
            request.task.cancel()
        self.loop.advance(1)
        self._settle()
        assert not self.pending, "a call was left behind"
        assert not self.runs.locks.locked_keys, "a thread was left locked"
        for tenant in ("acme", "other"):
            for thread in ("a", "b"):
                self._finish_thread(tenant, thread)
        for number in range(SLOTS):
            self.client_asks(f"tenant{number}", None, None, PLANS[0])
        assert len(self.pending) == SLOTS, "a slot was not freed"
        for request in self.unanswered:
            request.task.cancel()
        self.loop.advance(1)
        self.runs.close()
        self.loop.close()

    def _finish_thread(self, tenant: str, thread: str) -> None:
        key = self.runs.thread_key(thread, tenant)
        for _ in range(20):
            state = self.loop.run_until_complete(self.runs.state(key))
            if state is None or state.is_answered:
                return
            self.client_resumes(tenant, thread, None, replies=True)
            while self.pending:
                self.call_ends(0, True)
        raise AssertionError("the thread is never answered")


def response_of(result: Any) -> Response:
    if isinstance(result, Waiting):
        return json_response({"questions": result.questions}, 202)
    return json_response(result)


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
