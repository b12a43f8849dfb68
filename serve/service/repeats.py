"""Answers repeated requests, which a client sends if it received no response.

With an ``Idempotency-Key`` (draft-ietf-httpapi-idempotency-key-header), a repeated request returns
the response of the first request, or continues the first request's run if the run did not end.
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
from casewright.serve.service.checkpoint_sums import damaged_thread_error
from casewright.serve.service.events import Event
from casewright.serve.service.problems import RefusedError
from casewright.serve.service.recent import TenantLru

#: LangGraph's ``TTLConfig`` in minutes: a response expires after a day; deletion is hourly.
TTL_CONFIG: Any = {"default_ttl": 24 * 60, "refresh_on_read": False, "sweep_interval_minutes": 60}
#: Maximum number of responses in memory, of all tenants together; in memory, none expires.
MAX_IN_MEMORY = 1000
_NAMESPACE = ("casewright", "requests")


@asynccontextmanager
async def deleting_expired(store: Any) -> AsyncIterator[Any]:
    """Delete expired items of a store while the context lasts."""
    await store.start_ttl_sweeper()
    try:
        yield store
    finally:
        await store.stop_ttl_sweeper()


@dataclass(slots=True)
class Attempt:
    """One try of a request with an idempotency key; a repeated request is another attempt.

    Attributes:
        request_id: A digest of domain, tenant and key, the same for all attempts of a request.
        content_digest: A digest of the request's content.
        thread_key: The checkpointer's key of the request's thread, if any.
        run_id: The id of the run that this attempt, or else an earlier attempt, resumed, if any.
    """

    request_id: str
    content_digest: str
    tenant: str
    thread_key: str | None = None
    run_id: str | None = None


def attempt_of(
    key: str | None, domain: str, tenant: str, thread_key: str | None, *content: Any
) -> Attempt | None:
    """Return the attempt of a request; ``None`` if the request has no idempotency key.

    The key may be quoted. ``content`` has JSON types, and must be the same in a repeated request.
    """
    if key is None:
        return None
    request_id = _digest(domain, tenant, key.strip('"'))
    return Attempt(request_id, _digest(thread_key, *content), tenant, thread_key)


class Repeats:
    """Stores responses by idempotency key; if ``bounded``, at most ``MAX_IN_MEMORY`` responses."""

    def __init__(self, store: Any, *, bounded: bool) -> None:
        self._store = store
        self._recent: TenantLru[None] | None = TenantLru(MAX_IN_MEMORY) if bounded else None
        self._in_progress: set[str] = set()

    async def once(
        self, attempt: Attempt | None, work: Callable[[], Awaitable[Response]]
    ) -> Response:
        """Return the stored response of an earlier attempt, or else the response of ``work``.

        Raise ``RefusedError`` if an earlier attempt is in progress, or had other content.
        """
        if attempt is None:
            return await work()
        async with self._claim(attempt) as earlier:
            if earlier is not None and earlier["status"]:  # Status 0: there is no response yet.
                return Response(earlier["body"], earlier["status"], media_type="application/json")
            response = await work()
            await self._store_response(attempt, response.status_code, bytes(response.body).decode())
            return response

    async def stream_once(
        self, attempt: Attempt | None, events: AsyncGenerator[Event, None]
    ) -> AsyncGenerator[Event, None]:
        """Yield the events of a request; only the stored last event if an earlier attempt ended."""
        async with aclosing(events):
            if attempt is None:
                async for event in events:
                    yield event
                return
            async with self._claim(attempt) as earlier:
                if earlier is not None and earlier["status"]:
                    last_event = json.loads(earlier["body"])
                    yield Event(last_event["event"], last_event["data"])
                    return
                async for event in events:
                    if event.name in ("done", "waiting"):
                        body = json_text({"event": event.name, "data": event.data})
                        await self._store_response(attempt, 200, body)
                    yield event

    @asynccontextmanager
    async def _claim(self, attempt: Attempt) -> AsyncIterator[Mapping[str, Any] | None]:
        """Lock a request, and yield the stored record of its earlier attempt, if any."""
        if attempt.request_id in self._in_progress:
            raise RefusedError(
                409, "The first request with this Idempotency-Key is at work. Wait for its end."
            )
        self._in_progress.add(attempt.request_id)
        try:
            try:
                stored_item = await self._store.aget(_NAMESPACE, attempt.request_id)
            except ValueError as error:
                raise damaged_thread_error(f"the repeated request's answer: {error}") from error
            earlier: dict[str, Any] | None = dict(stored_item.value) if stored_item else None
            # Earlier versions stored no checksum.
            if earlier and earlier.pop("sum", None) not in (None, _digest(earlier)):
                raise damaged_thread_error("the checksum of the repeated request's answer is wrong")
            if earlier and earlier["asked"] != attempt.content_digest:
                raise RefusedError(
                    422, "This Idempotency-Key came with another request. Give a new key."
                )
            attempt.run_id = earlier["run"] if earlier else None
            yield earlier
        finally:
            self._in_progress.discard(attempt.request_id)

    async def begin(self, attempt: Attempt, run_id: str | None) -> None:
        """Record that an attempt resumes a run, and has no response yet."""
        attempt.run_id = run_id
        await self._store_response(attempt, 0, "")

    async def forget(self, key: str) -> None:
        """Delete the responses to requests of a thread with this key."""
        while items := await self._store.asearch(_NAMESPACE, filter={"thread": key}, limit=100):
            for item in items:
                await self._store.adelete(_NAMESPACE, item.key)

    async def _store_response(self, attempt: Attempt, status: int, body: str) -> None:
        record: dict[str, Any] = {"asked": attempt.content_digest, "thread": attempt.thread_key}
        record |= {"run": attempt.run_id, "status": status, "body": body}
        await self._store.aput(_NAMESPACE, attempt.request_id, {**record, "sum": _digest(record)})
        if self._recent is not None:
            evicted_keys = self._recent.put(
                attempt.tenant, attempt.request_id, None, protected=self._in_progress
            )
            for key in evicted_keys:
                await self._store.adelete(_NAMESPACE, key)


def _digest(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
