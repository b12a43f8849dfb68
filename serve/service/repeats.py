"""Requests that are repeated: a client that heard no answer sends the same one again.

With an ``Idempotency-Key`` (the draft standard draft-ietf-httpapi-idempotency-key-header) the
repeated request returns what the first one did; where that did not end, it goes on with it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from casewright.graph.json_text import json_text
from casewright.serve.service.checkpoint_sums import damaged_thread
from casewright.serve.service.events import Event
from casewright.serve.service.problems import RefusedError
from casewright.serve.service.recent import Latest

#: How long a store knows what a request returned, in minutes.
TTL: Any = {"default_ttl": 24 * 60, "refresh_on_read": False, "sweep_interval_minutes": 60}
#: Of so many requests of all tenants memory does, which has no clock.
MOST_IN_MEMORY = 1000
_PLACE = ("casewright", "requests")


@asynccontextmanager
async def swept(store: Any) -> AsyncIterator[Any]:
    """Have a store forget what is older than ``TTL`` says, while the context lasts."""
    await store.start_ttl_sweeper()
    try:
        yield store
    finally:
        await store.stop_ttl_sweeper()


@dataclass(slots=True)
class Attempt:
    """One try of a request that has a key.

    Attributes:
        id: A digest of whose request it is, and of its key.
        asked: A digest of what it asks.
        tenant: Whose it is.
        thread: The checkpointer's key of its thread, if it has one.
        run: The run that an earlier try went on with, where that did not end.
    """

    id: str
    asked: str
    tenant: str
    thread: str | None = None
    run: str | None = None


def attempt_of(
    key: str | None, domain: str, tenant: str, thread: str | None, *asked: Any
) -> Attempt | None:
    """Return the attempt of a request, if it has a key.

    Args:
        key: What its ``Idempotency-Key`` says, with or without the quotes of the draft standard.
        domain: Whose tenants they are.
        tenant: Whose request it is.
        thread: The checkpointer's key of its thread, if it has one.
        asked: All that says what it asks, JSON-plain.
    """
    if key is None:
        return None
    id_ = _digest(domain, tenant, key.strip('"'))
    return Attempt(id_, _digest(thread, *asked), tenant, thread)


class Repeats:
    """What requests with a key returned, of all tenants.

    Args:
        store: LangGraph's.
        bounded: Whether it is memory.
    """

    def __init__(self, store: Any, *, bounded: bool) -> None:
        self._store = store
        self._latest: Latest[None] | None = Latest(MOST_IN_MEMORY) if bounded else None
        self._working: set[str] = set()

    async def once(
        self, attempt: Attempt | None, work: Callable[[], Awaitable[Response]]
    ) -> Response:
        """Return the response of a request: the first one's, where that ended.

        What failed is worked on again.

        Raises:
            RefusedError: The first one is still at work, or asked something else.
        """
        if attempt is None:
            return await work()
        async with self._alone(attempt) as before:
            if before is not None and before["status"]:
                return Response(before["body"], before["status"], media_type="application/json")
            response = await work()
            await self._keep(attempt, response.status_code, bytes(response.body).decode())
            return response

    async def streamed(
        self, attempt: Attempt | None, events: AsyncGenerator[Event, None]
    ) -> AsyncGenerator[Event, None]:
        """Yield the events of a request; of one that ended before, the last one alone."""
        async with aclosing(events):
            if attempt is None:
                async for event in events:
                    yield event
                return
            async with self._alone(attempt) as before:
                if before is not None and before["status"]:
                    ended = json.loads(before["body"])
                    yield Event(ended["event"], ended["data"])
                    return
                async for event in events:
                    if event.name in ("done", "waiting"):
                        body = json_text({"event": event.name, "data": event.data})
                        await self._keep(attempt, 200, body)
                    yield event

    @asynccontextmanager
    async def _alone(self, attempt: Attempt) -> AsyncIterator[Mapping[str, Any] | None]:
        """Work on a request alone; gives what is known of an earlier try."""
        if attempt.id in self._working:
            raise RefusedError(
                409, "The first request with this Idempotency-Key is at work. Wait for its end."
            )
        self._working.add(attempt.id)
        try:
            try:
                found = await self._store.aget(_PLACE, attempt.id)
            except ValueError as error:
                raise damaged_thread(f"the repeated request's answer: {error}") from error
            before: dict[str, Any] | None = dict(found.value) if found else None
            # Earlier versions kept no checksum.
            if before and before.pop("sum", None) not in (None, _digest(before)):
                raise damaged_thread("the repeated request's answer has another checksum")
            if before and before["asked"] != attempt.asked:
                raise RefusedError(
                    422, "This Idempotency-Key came with another request. Give each its own."
                )
            attempt.run = before["run"] if before else None
            yield before
        finally:
            self._working.discard(attempt.id)

    async def begin(self, attempt: Attempt, run: str | None) -> None:
        """Note that a run is about to be gone on with."""
        attempt.run = run
        await self._keep(attempt, 0, "")

    async def forget(self, thread: str) -> None:
        """Forget what requests of a thread returned."""
        while found := await self._store.asearch(_PLACE, filter={"thread": thread}, limit=100):
            for item in found:
                await self._store.adelete(_PLACE, item.key)

    async def _keep(self, attempt: Attempt, status: int, body: str) -> None:
        value = {
            "asked": attempt.asked,
            "thread": attempt.thread,
            "run": attempt.run,
            "status": status,
            "body": body,
        }
        await self._store.aput(_PLACE, attempt.id, {**value, "sum": _digest(value)})
        if self._latest is not None:
            for gone in self._latest.put(attempt.tenant, attempt.id, None, self._working):
                await self._store.adelete(_PLACE, gone)


def _digest(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
