"""The service's one way to answer, which every route uses: its own and LangServe's."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any, cast

from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from casewright.errors import StoreDamagedError
from casewright.graph import ChatGenerator, RunContext, build_graph
from casewright.graph.checkpoint_reading import strict
from casewright.serve.service.answers import Answers
from casewright.serve.service.checkpoints import RecentThreads, thread_key
from casewright.serve.service.events import Event
from casewright.serve.service.models import AskBody, ResumeBody
from casewright.serve.service.options import Parts, ServiceOptions
from casewright.serve.service.places import Places
from casewright.serve.service.plan_steps import plan_steps
from casewright.serve.service.planning import EarlierPlanner
from casewright.serve.service.problems import RefusedError, answer_without_paths, paths_in, without
from casewright.serve.service.recent import RecentRun, RecentRuns
from casewright.serve.service.repeats import Attempt, Repeats, attempt_of
from casewright.serve.service.thread_locks import ThreadLocks
from casewright.serve.service.thread_state import REQUEST, ThreadState, thread_state
from casewright.serve.service.tokens import Caller
from casewright.serve.session.scopes import check_whole, scope_of
from casewright.serve.session.threaded import off_loop
from casewright.stores import Case

#: What the graph tells of a step.
_STEP = ("step_started", "step_ended")
#: A whole text is streamed in pieces of some words.
_PIECE = re.compile(r"\s*\S+(?:\s+\S+){0,5}|\s+")


@dataclass(frozen=True, slots=True)
class Waiting:
    """A run that waits for what its tools asked; its thread goes on with the reply.

    Attributes:
        questions: Each with the ``id`` that a reply names.
    """

    questions: Sequence[Mapping[str, Any]]


class Runs:
    """Answers questions by graphs that are compiled once.

    A question with a thread runs under the checkpointer, any other without one.

    Args:
        parts: What answers.
        options: What bounds it.
        saver: LangGraph's checkpointer.
        answers: The kept answers, where any are.
        locks: Which threads are at work.
        store: LangGraph's, for what requests with a key returned; in memory by default.
    """

    def __init__(
        self,
        parts: Parts,
        options: ServiceOptions,
        saver: Any,
        answers: Answers | None,
        locks: ThreadLocks | None = None,
        store: Any = None,
    ) -> None:
        self.parts = parts
        self.options = options
        self.saver = strict(saver)
        self.answers = answers
        self.recent = RecentRuns()
        self.locks = locks or ThreadLocks()
        self.repeats = Repeats(store or InMemoryStore(), bounded=options.threads_in_memory)
        self._threads = RecentThreads(self.saver, bounded=options.threads_in_memory)
        self._reading: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._places = Places(options.max_concurrency, options.tenant_concurrency)
        # Computing in more threads than this only has them wait for each other.
        self._pool = ThreadPoolExecutor(4, "casewright-compute")
        self._planner, generator = off_loop(parts.planner, parts.generator, self._pool)
        self._modes: list[Any] = ["custom", "values"]
        if isinstance(generator, ChatGenerator):
            self._modes.append("messages")
        self._plain = build_graph(parts.toolbox, self._planner, generator)
        self.graph = build_graph(parts.toolbox, self._planner, generator, checkpointer=self.saver)

    def close(self) -> None:
        """Let the threads go."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def ask(
        self, body: AskBody, caller: Caller, attempt: Attempt | None = None
    ) -> dict[str, Any] | Waiting:
        """Answer a question; returns the answer's JSON form.

        A thread's run that an earlier try of the same request began goes on.

        Raises:
            InputError: Question, context, history or scope are unusable.
            RefusedError: The thread is busy, or a tool asks something and there is no thread.
        """
        given: Any = _given(body)
        context = self._context(body.scope, caller)
        if body.thread_id is None:
            async with self._places.one_of(caller.tenant):
                state = await self._plain.ainvoke(given, context=context)
        else:
            key = self.key(body.thread_id, caller)
            async with self.locks.alone(key):
                await self._threads.used(caller.tenant, key, self.locks.keys)
                async with self._places.one_of(caller.tenant):
                    begun = await self._begun(key, attempt)
                    if begun is None:
                        await self._threads.begun(key)
                        config = _config(key, attempt.id if attempt else None)
                        state = await self.graph.ainvoke(given, config, context=context)
                    else:
                        state = await self._gone_on(begun, key, context)
        return await self._ended(state, body, caller, body.thread_id)

    async def stream(
        self, body: AskBody, caller: Caller, attempt: Attempt | None = None
    ) -> AsyncGenerator[Event, None]:
        """Answer a question, and yield what happens on the way; the last is ``done``.

        Raises:
            InputError: See ``ask``; so are the others.
        """
        given: Any = _given(body)
        context = self._context(body.scope, caller)
        graph, config, key = self._plain, None, None
        if body.thread_id is not None:
            key = self.key(body.thread_id, caller)
            graph, config = self.graph, _config(key, attempt.id if attempt else None)
        state: dict[str, Any] = {}
        async with self.locks.alone(key):
            if key is not None:
                await self._threads.used(caller.tenant, key, self.locks.keys)
            async with self._places.one_of(caller.tenant):
                begun = await self._begun(key, attempt)
                if begun is None and key is not None:
                    await self._threads.begun(key)
                if begun is not None and begun.ended:
                    state.update(begun.returned)
                else:
                    chunks = graph.astream(
                        given if begun is None else None,
                        config,
                        context=context,
                        stream_mode=self._modes,
                    )
                    async for event in _told(chunks, state):
                        yield event
        ended = await self._ended(state, body, caller, body.thread_id)
        if isinstance(ended, Waiting):
            yield Event("waiting", {"thread_id": body.thread_id, "questions": ended.questions})
        else:
            yield Event("done", ended)

    async def resume(
        self, thread_id: str, body: ResumeBody, caller: Caller, attempt: Attempt | None = None
    ) -> dict[str, Any] | Waiting:
        """Go on with a thread's run where it was left; no finished step is repeated.

        A reply names the question that it is to; the others are asked again.

        Raises:
            InputError: The scope is unusable, or not all there.
            RefusedError: There is no such thread, it is busy, or nothing of it is left to do.
        """
        key = self.key(thread_id, caller)
        # Who asked is not kept, and nobody else may be asked for.
        context = self._context(body.scope, caller, resumed=True)
        async with self.locks.alone(key):
            found = await self.state(key)
            if found is None:
                raise unknown_thread()
            run = found.values.get("run_id")
            given = _reply(
                found, body, begun=attempt is not None and attempt.run == run is not None
            )
            await self._threads.used(caller.tenant, key, self.locks.keys)
            async with self._places.one_of(caller.tenant):
                if attempt is not None:
                    await self.repeats.begin(attempt, run)
                state = await self._gone_on(found, key, context, given)
        asked = AskBody.model_construct(
            question=str(found.values["question"]),
            context=found.values.get("context") or {},
            history=found.values.get("history") or [],
        )
        return await self._ended(state, asked, caller, thread_id)

    async def forget(self, thread_id: str, caller: Caller) -> None:
        """Delete a thread.

        Raises:
            RefusedError: There is no such thread, or it is busy.
        """
        key = self.key(thread_id, caller)
        async with self.locks.alone(key):
            # One that is damaged can be deleted, too.
            with suppress(StoreDamagedError, ValueError):
                if await self.saver.aget_tuple(_config(key)) is None:
                    raise unknown_thread()
            await self.saver.adelete_thread(key)
            await self.repeats.forget(key)
            self._threads.forget(caller.tenant, key)

    async def approve(self, run_id: str, caller: Caller) -> dict[str, Any]:
        """Keep the answer of a run as a case, as its user asks; returns what became of it.

        Raises:
            RefusedError: Answers are not kept here, or there is no such run of this tenant.
        """
        if self.answers is None or self.options.retain == "off":
            raise RefusedError(409, "Answers are not kept here: the setting retain is off.")
        run = self.recent.of(caller.tenant, run_id)
        if run is None:
            raise RefusedError(404, "There is no such run among those that were answered lately.")
        return await self._retained(run, "approved")

    async def kept(self, caller: Caller) -> list[Case]:
        """Return a tenant's kept answers, the newest first.

        All of them are read, so one reading of a tenant's follows the other. The thread of one
        whose client goes reads on, and the next waits for it all the same.
        """
        if self.answers is None:
            return []
        alone = self._reading[caller.tenant]
        await alone.acquire()
        reading = asyncio.ensure_future(asyncio.to_thread(self.answers.all, caller.tenant))
        reading.add_done_callback(lambda ended: alone.release())
        return await asyncio.shield(reading)

    def attempt(
        self, request_key: str | None, caller: Caller, thread_id: str | None, *asked: Any
    ) -> Attempt | None:
        """Return the attempt of a request, if it has an ``Idempotency-Key``; see ``attempt_of``."""
        thread = None if thread_id is None else self.key(thread_id, caller)
        return attempt_of(request_key, self.parts.domain, caller.tenant, thread, *asked)

    async def state(self, key: str) -> ThreadState | None:
        """Return what is kept of a thread; ``None`` where there is nothing."""
        return await thread_state(self.graph, self.saver, key)

    def key(self, thread_id: str, caller: Caller) -> str:
        """Return the checkpointer's key of a tenant's thread."""
        return thread_key(self.parts.domain, caller.tenant, thread_id)

    async def _begun(self, key: str | None, attempt: Attempt | None) -> ThreadState | None:
        """Return a thread's state where its run is what an earlier try of the request began."""
        if key is None or attempt is None:
            return None
        found = await self.state(key)
        return found if found is not None and found.request == attempt.id else None

    async def _gone_on(
        self, found: ThreadState, key: str, context: RunContext, given: Command[Any] | None = None
    ) -> Mapping[str, Any]:
        """Go on with a thread's run, if anything is left to do; returns what it returned."""
        if found.ended and given is None:
            return found.returned
        config = _config(key, found.request)
        return await self.graph.ainvoke(cast("Any", given), config, context=context)

    def _context(
        self, given: Mapping[str, str], caller: Caller, *, resumed: bool = False
    ) -> RunContext:
        planner = None
        if self.answers is not None and self.options.retain != "off":
            planner = EarlierPlanner(self._planner, self.answers, caller.tenant, self._pool)
        # Nobody may be taken for the demo's customer but on the machine of whoever tries it out.
        if resumed or self.options.tokens:
            check_whole(self.parts.scopes, given)
        scope = scope_of(self.parts.scopes, given)
        return RunContext(scope={**scope, "tenant": caller.tenant}, planner=planner)

    async def _ended(
        self, state: Mapping[str, Any], body: AskBody, caller: Caller, thread_id: str | None
    ) -> dict[str, Any] | Waiting:
        """Return the answer that a run ended with, kept as a case where it is to be."""
        if state.get("__interrupt__"):
            if thread_id is None:
                raise RefusedError(409, "A tool waits for a reply. Ask again with a thread_id.")
            found = await self.state(self.key(thread_id, caller))
            return Waiting(found.questions if found is not None else [])
        told = answer_without_paths(state["answer"])
        answer = dict(told)
        answer["thread_id"] = thread_id
        answer["retained"] = None
        if self.options.retain == "off" or self.answers is None or body.history or body.context:
            return answer
        run = RecentRun(caller.tenant, body.question, told)
        self.recent.add(run)
        if self.options.retain == "verified":
            answer["retained"] = await self._retained(run, "verified")
        return answer

    async def _retained(self, run: RecentRun, kept_by: str) -> dict[str, Any]:
        assert self.answers is not None
        kept = await asyncio.to_thread(
            self.answers.retain, run.tenant, run.question, run.answer, kept_by
        )
        return {"id": kept.id, "outcome": kept.outcome, "reason": kept.reason}


def unknown_thread() -> RefusedError:
    """Return the error of a thread that is not there, or another tenant's."""
    return RefusedError(404, "There is no such thread.")


def _given(body: AskBody) -> dict[str, Any]:
    return {
        "question": body.question,
        "context": dict(body.context),
        "history": [{"question": turn.question, "answer": turn.answer} for turn in body.history],
    }


def _config(key: str, request: str | None = None) -> Any:
    about = {"metadata": {REQUEST: request}} if request else {}
    return {"configurable": {"thread_id": key}, **about}


def _reply(found: ThreadState, body: ResumeBody, *, begun: bool) -> Command[Any] | None:
    """Return what a thread's run goes on with; ``None`` where that is nothing new.

    Args:
        found: The thread.
        body: The request.
        begun: Whether an earlier try of the same request gave its reply already, or was about to.

    Raises:
        RefusedError: Nothing is left to do, or the reply is to no question that is open.
    """
    if body.reply_to is not None and body.reply_to in found.interrupts:
        return Command(resume={found.interrupts[body.reply_to]: body.reply})
    if body.reply_to is None:
        if found.questions and not begun:
            raise RefusedError(409, 'A tool waits for a reply. Send "reply" and "reply_to".')
        if found.answered and not begun:
            raise RefusedError(409, "The thread's last question is answered: ask a new one.")
    elif not begun:
        raise RefusedError(
            409, "No tool waits for a reply to that question any more. Look at the thread."
        )
    return None


async def _told(chunks: Any, state: dict[str, Any]) -> AsyncGenerator[Event, None]:
    """Yield the events of a graph's stream, and keep its state as it is at the end."""
    streamed = False
    hidden: set[str] = set()
    async with aclosing(chunks):
        async for mode, chunk in chunks:
            if mode == "values":
                state.clear()
                state.update(chunk)
            elif mode == "messages":
                if text := _token(chunk):
                    streamed = True
                    yield Event("token", {"text": text})
            elif isinstance(chunk, Mapping):
                for event in _events(chunk, hidden, streamed=streamed):
                    yield event


def _events(chunk: Mapping[str, Any], hidden: set[str], *, streamed: bool) -> Iterator[Event]:
    """Return what is streamed of one of the graph's events; ``hidden`` gathers errors' paths."""
    # A tool may write events of its own.
    kind = chunk.get("event")
    if kind == "plan":
        plan = chunk["plan"]
        yield Event("plan", {"plan": plan, "steps": plan_steps(plan), "planner": chunk["planner"]})
    elif kind in _STEP:
        data = {"id": chunk["step"], "tool": chunk["tool"]}
        if kind == "step_started":
            yield Event("step", {**data, "status": "started"})
            return
        error = str(chunk["error"])
        hidden |= paths_in([error])
        ended = {name: chunk[name] for name in ("status", "milliseconds", "results")}
        yield Event("step", {**data, **ended, "error": without(error, hidden)})
    elif kind == "step_report":
        yield Event("report", {"id": chunk["step"], "report": chunk["report"]})
    elif kind == "answer" and not streamed:
        # The generator gave a whole text.
        for piece in _PIECE.findall(without(chunk["text"], hidden)):
            yield Event("token", {"text": piece})


def _token(chunk: Any) -> str:
    """Return the text of a chat model's token, where it words the answer."""
    message, about = chunk
    return str(message.text) if about.get("langgraph_node") == "generate" else ""
