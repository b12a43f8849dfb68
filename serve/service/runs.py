"""Plans and answers questions, and resumes runs, for all routes, including LangServe's."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from casewright.errors import InputError, PlanError, StoreDamagedError
from casewright.graph import Approve, ChatGenerator, Latencies, Limits, RunContext, build_graph
from casewright.graph.checkpoint_reading import restrict_types
from casewright.graph.planning import check_tools, plan_within
from casewright.planner import Plan, PlanRequest, Turn, parse_plan
from casewright.planner.fixed import FixedPlanner
from casewright.serve.service import models
from casewright.serve.service.answers import AnswerStore
from casewright.serve.service.checkpoints import RecentThreads, thread_key
from casewright.serve.service.events import Event
from casewright.serve.service.limits import Slots
from casewright.serve.service.metrics import Metrics
from casewright.serve.service.models import AskBody, PlanBody, ResumeBody
from casewright.serve.service.options import Parts, ServiceOptions
from casewright.serve.service.planning import PlanReusingPlanner
from casewright.serve.service.problems import RefusedError, answer_without_paths, paths_in, redact
from casewright.serve.service.recent import TenantLru
from casewright.serve.service.repeats import Attempt, Repeats, attempt_of
from casewright.serve.service.thread_locks import ThreadLocks
from casewright.serve.service.thread_state import REQUEST_ID, ThreadState, thread_state
from casewright.serve.session.scopes import require_all_fields, scope_of
from casewright.serve.session.threaded import run_in_threads
from casewright.stores import Case
from casewright.tools.body import arun

#: Maximum number of runs, of all tenants together, whose answers users can approve later.
MAX_RECENT = 1000
#: The stream modes that every run of the graph needs.
_MODES: list[Any] = ["custom", "values"]
#: A piece of up to six words. A text that the generator does not stream is sent in such pieces.
_SIX_WORDS = re.compile(r"\s*\S+(?:\s+\S+){0,5}|\s+")


@dataclass(frozen=True, slots=True)
class Waiting:
    """A run that waits for replies to ``questions``; a reply names the ``id`` of its question."""

    questions: Sequence[Mapping[str, Any]]


class Runs:
    """Runs questions on graphs that are compiled once per service.

    Only questions with a thread run with the checkpointer ``saver``. ``store`` keeps the responses
    to repeated requests. By default, ``store`` and the locks of threads are in memory. ``answers``
    is the store of retained answers, if the service retains any.
    """

    def __init__(
        self,
        parts: Parts,
        options: ServiceOptions,
        saver: Any,
        answers: AnswerStore | None,
        locks: ThreadLocks | None = None,
        store: Any = None,
        metrics: Metrics | None = None,
    ) -> None:
        self.parts = parts
        self.options = options
        self.saver = restrict_types(saver)
        self.answer_store = answers
        self.locks = locks or ThreadLocks()
        self.metrics = metrics or Metrics()
        self.repeats = Repeats(store or InMemoryStore(), bounded=options.threads_in_memory)
        # The question and the answer of a run, without paths of this machine, by the run's id.
        self._recent_runs: TenantLru[tuple[str, Mapping[str, Any]]] = TenantLru(MAX_RECENT)
        self._recent_threads = RecentThreads(self.saver, bounded=options.threads_in_memory)
        self._read_locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._slots = Slots(options.max_concurrency, options.tenant_concurrency)
        self._pool = ThreadPoolExecutor(options.compute_threads, "casewright-compute")
        self._planner, generator = run_in_threads(parts.planner, parts.generator, self._pool)
        # LangGraph streams the tokens of a chat model in the mode "messages".
        self._modes = [*_MODES, *(["messages"] if isinstance(generator, ChatGenerator) else [])]
        limits = {"calls": options.max_calls, "cost": options.max_cost}
        self._limits = Limits().within({name: limit for name, limit in limits.items() if limit})
        self._latencies = Latencies()
        settings: Any = {"limits": self._limits, "latencies": self._latencies}
        settings["approve"] = options.approve
        build = partial(build_graph, parts.toolbox, self._planner, generator, **settings)
        self._graph_without_threads = build()
        self.graph = build(checkpointer=self.saver)

    def close(self) -> None:
        """Shut down the worker threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def plan(self, body: PlanBody, tenant: str) -> dict[str, Any]:
        """Return a question's plan with its price; no tool is called.

        Raises:
            InputError: Question, context, history, scope or budget is invalid.
            PlanError: The planner's plan is not valid.
        """
        run_context = self._run_context(body.scope, tenant, limits=body.budget)
        limits, toolbox = self._limits.within(run_context.limits), self.parts.toolbox
        check_tools(run_context.limits, toolbox)
        request = PlanRequest(
            body.question, toolbox, dict(body.context), _turns(body), max_steps=limits.steps
        )
        planner = run_context.planner or self._planner
        async with self._slots.hold(tenant):
            with self.metrics.track_run():
                planning = plan_within(planner, request, limits, self._latencies.seconds())
                plan, planner_json = await arun(planning)
        self.metrics.record_phase("planning", planner_json["milliseconds"])
        request.validate(plan)
        return {"plan": str(plan), "plan_steps": plan_steps(str(plan)), "planner": planner_json}

    async def ask(
        self, body: AskBody, tenant: str, attempt: Attempt | None = None
    ) -> dict[str, Any] | Waiting:
        """Return the answer to a question in its JSON form.

        If an earlier attempt of the same request began a run of the thread, that run continues.

        Raises:
            InputError: Question, context, history or scope is invalid.
            RefusedError: The thread is busy, or a tool asks a question and there is no thread.
        """
        state: dict[str, Any] = {}
        async for _ in self._events(body, tenant, attempt, state, emit=False):
            pass
        return await self._result(state, body, tenant, body.thread_id)

    async def stream(
        self, body: AskBody, tenant: str, attempt: Attempt | None = None
    ) -> AsyncGenerator[Event, None]:
        """Answer as ``ask`` does, and yield the events; the last is ``done`` or ``waiting``."""
        state: dict[str, Any] = {}
        async with aclosing(self._events(body, tenant, attempt, state)) as events:
            async for event in events:
                yield event
        result = await self._result(state, body, tenant, body.thread_id)
        if isinstance(result, Waiting):
            yield Event("waiting", {"thread_id": body.thread_id, "questions": result.questions})
        else:
            yield Event("done", result)

    async def resume(
        self, thread_id: str, body: ResumeBody, tenant: str, attempt: Attempt | None = None
    ) -> dict[str, Any] | Waiting:
        """Continue a thread's run where it stopped; no finished step is repeated.

        All replies go to the graph at once. A question without a reply is asked again.

        Raises:
            InputError: The scope is invalid or incomplete.
            RefusedError: There is no such thread, it is busy, or its run has ended.
        """
        key = self.thread_key(thread_id, tenant)
        # The request gives the scope: none is stored, and a default could be another person's.
        run_context = self._run_context(body.scope, tenant, is_resumed=True)
        async with self.locks.lock(key):
            thread = await self.state(key)
            if thread is None:
                raise no_thread_error()
            run_id = thread.values.get("run_id")
            is_retry = attempt is not None and run_id is not None and attempt.run_id == run_id
            command = _resumption(thread, body, is_retry=is_retry)
            await self._recent_threads.mark_used(tenant, key, self.locks.locked_keys)
            async with self._slots.hold(tenant):
                if attempt is not None:
                    await self.repeats.begin(attempt, run_id)
                if thread.is_idle and command is None:  # An earlier attempt resumed the run.
                    state = thread.final_state
                else:
                    state = {}
                    inputs, config = cast("Any", command), _config(key, thread.request_id)
                    chunks = self.graph.astream(
                        inputs, config, context=run_context, stream_mode=_MODES
                    )
                    async for _ in self._graph_events(chunks, state, emit=False):
                        pass
        ask_body = AskBody.model_construct(
            question=str(thread.values["question"]),
            context=thread.values.get("context") or {},
            history=thread.values.get("history") or [],
        )
        return await self._result(state, ask_body, tenant, thread_id)

    async def forget(self, thread_id: str, tenant: str) -> None:
        """Delete a thread; raise ``RefusedError`` if it does not exist or is busy."""
        key = self.thread_key(thread_id, tenant)
        async with self.locks.lock(key):
            # A damaged thread can also be deleted.
            with suppress(StoreDamagedError, ValueError):
                if await self.saver.aget_tuple(_config(key)) is None:
                    raise no_thread_error()
            await self.saver.adelete_thread(key)
            await self.repeats.forget(key)
            self._recent_threads.forget(tenant, key)

    async def approve(self, run_id: str, tenant: str) -> dict[str, Any]:
        """Retain the answer of a recent run that a user approved; return the outcome."""
        if self.answer_store is None or self.options.retain == "off":
            raise RefusedError(409, "Answers are not retained here: the setting retain is off.")
        run = self._recent_runs.get(tenant, run_id)
        if run is None:
            raise RefusedError(404, "No such run is among the recently answered runs.")
        return await self._retain(*run, tenant, "approved")

    async def list_retained(self, tenant: str) -> list[Case]:
        """Return a tenant's retained answers, the newest first.

        A tenant's reads run one at a time, so that a client cannot start many by disconnecting.
        """
        if self.answer_store is None:
            return []
        lock = self._read_locks[tenant]
        await lock.acquire()
        reading = asyncio.ensure_future(asyncio.to_thread(self.answer_store.all, tenant))
        reading.add_done_callback(lambda _: lock.release())
        return await asyncio.shield(reading)

    def attempt(
        self, idempotency_key: str | None, tenant: str, thread_id: str | None, *content: Any
    ) -> Attempt | None:
        """Return the attempt of a request; see ``attempt_of``."""
        thread = None if thread_id is None else self.thread_key(thread_id, tenant)
        return attempt_of(idempotency_key, self.parts.domain, tenant, thread, *content)

    async def state(self, key: str) -> ThreadState | None:
        """Return the state of a thread; ``None`` if it is not stored."""
        return await thread_state(self.graph, self.saver, key)

    def thread_key(self, thread_id: str, tenant: str) -> str:
        """Return the checkpointer's key of a tenant's thread."""
        return thread_key(self.parts.domain, tenant, thread_id)

    async def _events(
        self,
        body: AskBody,
        tenant: str,
        attempt: Attempt | None,
        state: dict[str, Any],
        *,
        emit: bool = True,
    ) -> AsyncGenerator[Event, None]:
        """Run the graph for a question; yield events, and write the last state to ``state``.

        Without ``emit``, no event is yielded, but the metrics still count the graph's events.
        """
        inputs: Any = {"question": body.question, "context": dict(body.context)}
        inputs["history"] = _turns(body)
        limits = {**(body.budget or {}), **({"deadline": body.deadline} if body.deadline else {})}
        run_context = self._run_context(body.scope, tenant, limits=limits, approve=body.approve)
        run_context = replace(run_context, mend=body.mend)
        if isinstance(body, models.PinnedAsk):
            run_context = replace(run_context, planner=body.planner)
        elif isinstance(body, models.WrittenPlanBody):
            planner = FixedPlanner(self._read_plan(body), name="run_plan")
            run_context = replace(run_context, planner=planner)
        graph, config, key = self._graph_without_threads, None, None
        if body.thread_id is not None:
            key = self.thread_key(body.thread_id, tenant)
            graph, config = self.graph, _config(key, attempt.request_id if attempt else None)
        async with self.locks.lock(key):
            if key is not None:
                await self._recent_threads.mark_used(tenant, key, self.locks.locked_keys)
            async with self._slots.hold(tenant):
                last_run = await self.state(key) if key and attempt else None
                if last_run and attempt and last_run.request_id == attempt.request_id:
                    if last_run.is_idle:
                        state.update(last_run.final_state)
                        return
                    # Without inputs, the graph continues the earlier attempt's run.
                    inputs = None
                elif key is not None:
                    await self._recent_threads.begin_run(key)
                modes = self._modes if emit else _MODES
                chunks = graph.astream(inputs, config, context=run_context, stream_mode=modes)
                async for event in self._graph_events(chunks, state, emit=emit):
                    yield event

    async def _graph_events(
        self, chunks: Any, state: dict[str, Any], *, emit: bool
    ) -> AsyncGenerator[Event, None]:
        """Yield the events of a graph's stream, and write the graph's last state to ``state``."""
        has_tokens = False
        paths: set[str] = set()
        with self.metrics.track_run():
            async with aclosing(chunks):
                async for mode, chunk in chunks:
                    if mode == "values":
                        state.clear()
                        state.update(chunk)
                    elif mode == "messages":
                        message, metadata = chunk
                        node = metadata.get("langgraph_node")
                        # Only the tokens of the answer are streamed.
                        if node == "generate" and (text := str(message.text)):
                            has_tokens = True
                            yield Event("token", {"text": text})
                    elif isinstance(chunk, Mapping):
                        self.metrics.record_event(chunk)
                        events = _run_events(chunk, paths, has_tokens=has_tokens) if emit else ()
                        for event in events:
                            yield event

    def _read_plan(self, body: models.WrittenPlanBody) -> Plan:
        request = PlanRequest(body.question, self.parts.toolbox, body.context, _turns(body))
        try:
            plan = parse_plan(body.plan)
            request.validate(plan)
        except PlanError as error:
            raise InputError(str(error)) from None
        return plan

    def _run_context(
        self,
        scope: Mapping[str, str],
        tenant: str,
        *,
        is_resumed: bool = False,
        limits: Mapping[str, Any] | None = None,
        approve: Approve = "declared",
    ) -> RunContext:
        planner = None
        if self.answer_store is not None and self.options.retain != "off":
            planner = PlanReusingPlanner(self._planner, self.answer_store, tenant, self._pool)
        # Scope fields have defaults only in a service without tokens, which is for trials.
        if is_resumed or self.options.tokens:
            require_all_fields(self.parts.scopes, scope)
        scope = {**scope_of(self.parts.scopes, scope), "tenant": tenant}
        return RunContext(scope, planner=planner, limits=limits, approve=approve)

    async def _result(
        self, state: Mapping[str, Any], body: AskBody, tenant: str, thread_id: str | None
    ) -> dict[str, Any] | Waiting:
        """Return the result of a run; retain its answer if ``retain`` is "verified"."""
        if state.get("__interrupt__"):
            if thread_id is None:
                raise RefusedError(409, "The run waits for a reply. POST /ask with a thread_id.")
            thread = await self.state(self.thread_key(thread_id, tenant))
            return Waiting(thread.questions if thread is not None else [])
        answer = answer_without_paths(state["answer"])
        result = {**answer, "thread_id": thread_id, "retained": None}
        can_retain = self.options.retain != "off" and self.answer_store is not None
        # Retained answers are found by their question alone, without history and context.
        if not can_retain or body.history or body.context:
            return result
        if isinstance(body, (models.PinnedAsk, models.WrittenPlanBody)):
            # The client chose the plan, which no later question may reuse.
            return result
        self._recent_runs.put(tenant, str(answer["run_id"]), (body.question, answer))
        if self.options.retain == "verified":
            result["retained"] = await self._retain(body.question, answer, tenant, "verified")
        return result

    async def _retain(
        self, question: str, answer: Mapping[str, Any], tenant: str, retained_by: str
    ) -> dict[str, Any]:
        assert self.answer_store is not None
        retain = self.answer_store.retain
        result = await asyncio.to_thread(retain, tenant, question, answer, retained_by)
        return {"id": result.id, "outcome": result.outcome, "reason": result.reason}


def _turns(body: PlanBody) -> list[Turn]:
    return [Turn(question=turn.question, answer=turn.answer) for turn in body.history]


def no_thread_error() -> RefusedError:
    """Return the error for a thread that does not exist, or belongs to another tenant."""
    return RefusedError(404, "There is no such thread.")


def plan_steps(text: str) -> list[dict[str, Any]]:
    """Return ``id``, ``tool``, ``call``, and the ids of needed steps, for each step of a plan."""
    return [
        {
            "id": f"s{number}",
            "tool": step.tool,
            "call": str(step),
            "needs": [f"s{needed}" for needed in sorted({ref.step for ref in step.references()})],
        }
        for number, step in enumerate(parse_plan(text).steps, 1)
    ]


def steps_if_plan(text: str | None) -> list[dict[str, Any]]:
    """Return the result of ``plan_steps``; an empty list if the text is not a plan."""
    try:
        return plan_steps(text) if text else []
    except PlanError:
        return []


def _config(key: str, request_id: str | None = None) -> Any:
    metadata = {"metadata": {REQUEST_ID: request_id}} if request_id else {}
    return {"configurable": {"thread_id": key}, **metadata}


def _resumption(thread: ThreadState, body: ResumeBody, *, is_retry: bool) -> Command[Any] | None:
    """Return the command that resumes a thread; ``None`` if there is no new reply.

    Raise ``RefusedError`` if the replies do not fit the thread. ``is_retry`` is true if an earlier
    attempt of this request may already have sent the replies.
    """
    replies, interrupt_ids = body.replies or {}, thread.interrupt_ids
    open_replies = {interrupt_ids[id_]: replies[id_] for id_ in replies if id_ in interrupt_ids}
    if open_replies and (is_retry or len(open_replies) == len(replies)):
        return Command(resume=open_replies)
    if is_retry:
        return None
    if replies:
        raise RefusedError(
            409, "That question no longer waits for a reply. GET the thread for its open questions."
        )
    if thread.questions:
        raise RefusedError(409, 'The run waits for replies. Send "replies" by question id.')
    if thread.is_answered:
        raise RefusedError(409, "The thread's last question is answered: ask a new one.")
    return None


def _run_events(chunk: Mapping[str, Any], paths: set[str], *, has_tokens: bool) -> Iterator[Event]:
    """Yield the service's events for an event of the graph; ignore events that a tool wrote.

    ``paths`` collects the file paths in errors. If ``has_tokens``, the answer's text was sent.
    """
    name = chunk.get("event")
    if name == "plan":
        plan = chunk["plan"]
        yield Event("plan", {"plan": plan, "steps": plan_steps(plan), "planner": chunk["planner"]})
    elif name == "step_started":
        yield Event("step", {"id": chunk["step"], "tool": chunk["tool"], "status": "started"})
    elif name == "step_ended":
        error = str(chunk["error"])
        paths |= paths_in([error])
        fields = ("tool", "status", "milliseconds", "results", "evidence", "sentences")
        data = {field: chunk[field] for field in fields}
        yield Event("step", {"id": chunk["step"], **data, "error": redact(error, paths)})
    elif name == "step_report":
        yield Event("report", {"id": chunk["step"], "report": chunk["report"]})
    elif name == "answer" and not has_tokens:
        for piece in _SIX_WORDS.findall(redact(chunk["text"], paths)):
            yield Event("token", {"text": piece})
