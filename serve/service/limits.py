"""Limits of requests: size, JSON depth, time and number.

The middleware is plain ASGI, since ``BaseHTTPMiddleware`` buffers streams and hides disconnects.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from json import detect_encoding
from typing import TypeAlias

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from casewright.serve.service.options import ServiceOptions
from casewright.serve.service.problems import RefusedError, problem_response
from casewright.serve.service.tokens import is_open, tenant_of
from casewright.tools.deadline import owner

#: Extra time after the deadline in which a stream can report its timeout.
GRACE_SECONDS = 2.0
#: Maximum wait for cancelled work.
CANCEL_SECONDS = 5.0
#: Before a request is refused for its large body, at most this much of the body is discarded.
#: If the body were not read, the connection of a client that is still writing would be reset.
DISCARD_BYTES = 16 * 1024 * 1024
DISCARD_SECONDS = 5.0
#: Bodies larger than this are scanned in a thread; smaller bodies take at most a millisecond.
LARGE_BYTES = 64 * 1024
#: Maximum depth of nested JSON lists and objects.
MAX_JSON_DEPTH = 100
#: Maximum number of strings, brackets and commas in JSON; a large saved run has 50,000.
MAX_JSON_PARTS = 200_000
#: A string (closed or not), a bracket or a comma. The pattern scans no string twice.
_JSON_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{\]},]', re.DOTALL)
log = logging.getLogger("casewright.service")
_Slot: TypeAlias = AbstractAsyncContextManager[None]


class _DisconnectedError(Exception):
    """The client disconnected."""


class Slots:
    """``limit`` slots for concurrent work, of which each tenant holds at most ``tenant_limit``."""

    def __init__(self, limit: int, tenant_limit: int) -> None:
        self._all_slots = asyncio.Semaphore(limit)
        self._tenant_slots: defaultdict[str, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(tenant_limit)
        )

    @asynccontextmanager
    async def hold(self, tenant: str) -> AsyncIterator[None]:
        """Wait for a slot of a tenant, and hold it."""
        async with self._tenant_slots[tenant], self._all_slots:
            yield


class _Sender:
    """A request's ASGI ``send``, which tracks the response; its start extends the timeout."""

    def __init__(self, send: Send, timeout: asyncio.Timeout) -> None:
        self._send, self._timeout = send, timeout
        self.has_begun = self.is_complete = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and not self.has_begun:
            self.has_begun = True
            # After the status is sent, only the stream itself can report a timeout.
            if (when := self._timeout.when()) is not None and not self._timeout.expired():
                self._timeout.reschedule(when + GRACE_SECONDS)
        self.is_complete |= message["type"] == "http.response.body" and not message.get("more_body")
        await self._send(message)


class _Queue:
    """The slots of one kind of requests; as many requests may wait as there are slots.

    ``counts`` has the number of running and waiting requests by tenant.
    """

    def __init__(self, limit: int, tenant_limit: int) -> None:
        self.slots = Slots(limit, tenant_limit)
        self.counts: Counter[str] = Counter()
        self._max_total, self._max_of_tenant = 2 * limit, 2 * tenant_limit

    def is_full_for(self, tenant: str) -> bool:
        is_full = self.counts.total() >= self._max_total
        return is_full or self.counts[tenant] >= self._max_of_tenant


class Admission:
    """Middleware that bounds the number, size, JSON depth and time of requests.

    The body of a request is read before the request is processed; a disconnection cancels the work.
    ``max_concurrency`` POST and PUT requests run at once, and as many may wait; further requests
    get 503. Other methods are counted separately. Requests without authentication (``is_open``) are
    not counted. ``path_limits`` has the maximum bytes of a body for paths that may exceed
    ``max_body_bytes``.
    """

    def __init__(
        self, app: ASGIApp, *, options: ServiceOptions, path_limits: Mapping[str, int] | None = None
    ) -> None:
        self._app = app
        self._max_body_bytes = options.max_body_bytes
        self._path_limits = path_limits or {}
        self._max_seconds = options.request_seconds
        self._writes = _Queue(options.max_concurrency, options.tenant_concurrency)
        self._others = _Queue(options.max_concurrency, options.tenant_concurrency)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if is_open(scope):
            await self._handle(scope, receive, send, nullcontext())
            return
        queue = self._writes if scope["method"] in ("POST", "PUT") else self._others
        tenant = tenant_of(scope)
        if queue.is_full_for(tenant):
            detail = "Too many requests are at work. Try again."
            refusal = problem_response(503, detail, {"Retry-After": "1"})
            await refusal(scope, receive, send)
            return
        queue.counts[tenant] += 1
        # The threads of a request's tool calls are counted for its ``owner``, the tenant.
        owner_token = owner.set(tenant)
        try:
            await self._handle(scope, receive, send, queue.slots.hold(tenant))
        finally:
            owner.reset(owner_token)
            queue.counts[tenant] -= 1

    async def _handle(self, scope: Scope, receive: Receive, send: Send, slot: _Slot) -> None:
        deadline = asyncio.get_running_loop().time() + self._max_seconds
        scope.setdefault("state", {})["deadline"] = deadline
        timeout = asyncio.timeout_at(deadline)
        sender = _Sender(send, timeout)
        try:
            async with timeout:
                body = await self._read_body(scope, receive)
                if len(body) > LARGE_BYTES:
                    reason = await asyncio.to_thread(json_refusal, body)
                else:
                    reason = json_refusal(body)
                if reason:
                    raise RefusedError(422, reason)
                await self._work_until_disconnect(scope, receive, sender, body, slot)
        except RefusedError as error:
            if sender.has_begun:
                raise
            refusal = problem_response(error.status, str(error), error.headers)
            await refusal(scope, receive, send)
        except _DisconnectedError:
            return
        except TimeoutError:
            if not timeout.expired():
                raise
            if sender.has_begun:
                log.warning("A stream was cut: it exceeded its time.")
                return
            detail = f"The request took longer than {self._max_seconds:g} s. Ask something smaller."
            await problem_response(504, detail)(scope, receive, send)

    async def _read_body(self, scope: Scope, receive: Receive) -> bytes:
        headers = Headers(scope=scope)
        limit = max(self._max_body_bytes, self._path_limits.get(scope["path"], 0))
        detail = f"The request's body is larger than {limit:,} bytes. Send less."
        too_large = RefusedError(413, detail, {"Connection": "close"})
        chunks = _chunks(receive)
        declared = headers.get("content-length", "0")
        if declared.isdecimal() and int(declared) > limit:
            # A client that expects 100-continue has not sent its body yet.
            if headers.get("expect", "").lower() != "100-continue":
                await _discard(chunks)
            raise too_large
        body = bytearray()
        async for chunk in chunks:
            body += chunk
            if len(body) > limit:
                await _discard(chunks)
                raise too_large
        return bytes(body)

    async def _work_until_disconnect(
        self, scope: Scope, receive: Receive, sender: _Sender, body: bytes, slot: _Slot
    ) -> None:
        unread_bodies = [body]
        disconnect = asyncio.ensure_future(_wait_for_disconnect(receive))

        async def receive_body() -> Message:
            if unread_bodies:
                return {"type": "http.request", "body": unread_bodies.pop(), "more_body": False}
            await asyncio.shield(disconnect)
            return {"type": "http.disconnect"}

        async def handle() -> None:
            async with slot:
                await self._app(scope, receive_body, sender)

        work = asyncio.ensure_future(handle())
        try:
            await asyncio.wait({work, disconnect}, return_when=asyncio.FIRST_COMPLETED)
            # A disconnection is also reported after a complete response: then wait for the work.
            if work.done() or sender.is_complete:
                await work
        finally:
            disconnect.cancel()
            if not work.done():
                work.cancel()
                await asyncio.wait({work}, timeout=CANCEL_SECONDS)
            if work.done() and not work.cancelled():
                # Retrieve the exception, or asyncio logs it.
                work.exception()


async def _chunks(receive: Receive) -> AsyncIterator[bytes]:
    """Yield the chunks of a body; raise ``_DisconnectedError`` if the client disconnects."""
    has_more = True
    while has_more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _DisconnectedError
        yield message.get("body", b"")
        has_more = message.get("more_body", False)


async def _discard(chunks: AsyncIterator[bytes]) -> None:
    """Read the remaining chunks of a body, within limits."""
    remaining = DISCARD_BYTES
    with suppress(TimeoutError):
        async with asyncio.timeout(DISCARD_SECONDS):
            async for chunk in chunks:
                remaining -= len(chunk)
                if remaining <= 0:
                    return


def json_refusal(body: bytes) -> str:
    """Return the reason not to parse a body as JSON; empty if the parser may read it.

    The JSON parser is written in C: while it parses a large body, all other requests wait.
    """
    if not detect_encoding(body).startswith("utf-8"):
        return "The JSON is not UTF-8. Send it as UTF-8."
    depth = 0
    for count, token in enumerate(_JSON_TOKEN.finditer(body), 1):
        if count > MAX_JSON_PARTS:
            parts = f"{MAX_JSON_PARTS:,} texts, brackets and commas"
            return f"The JSON has more than {parts}. Send less."
        first_byte = body[token.start()]
        if first_byte in b"[{":
            depth += 1
            if depth > MAX_JSON_DEPTH:
                return f"The JSON is nested deeper than {MAX_JSON_DEPTH} levels. Send it flatter."
        elif first_byte in b"]}":
            depth -= 1
    return ""


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
