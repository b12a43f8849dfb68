"""What bounds a request: its size, its time, and how many there are at once.

Plain ASGI: Starlette's ``BaseHTTPMiddleware`` holds streams back and hides that a client has gone.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from typing import TYPE_CHECKING, TypeAlias

from starlette.datastructures import Headers

from casewright.serve.service.json_bounds import why_not_parsed
from casewright.serve.service.places import Places
from casewright.serve.service.problems import RefusedError, problem_response
from casewright.serve.service.tokens import is_open, tenant_of
from casewright.tools.call_threads import owner

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: How much longer than a request a stream may take, to say by itself that its time is over.
GRACE_SECONDS = 2.0
#: How long cancelled work is waited for.
CANCEL_SECONDS = 5.0
#: Of a body that is too large so much is read, and thrown away, before it is refused, and for so
#: long: a client that still writes would see its connection reset instead of the refusal.
UNREAD_BYTES = 16 * 1024 * 1024
UNREAD_SECONDS = 5.0
#: A body that is looked at in a thread: a smaller one takes a millisecond.
LARGE_BYTES = 64 * 1024
log = logging.getLogger("casewright.service")
_Place: TypeAlias = AbstractAsyncContextManager[None]


class _GoneError(Exception):
    pass


class _Reply:
    """What was sent so far."""

    def __init__(self, send: Send, deadline: asyncio.Timeout) -> None:
        self._send = send
        self._deadline = deadline
        self.begun = self.whole = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and not self.begun:
            self.begun = True
            # From now on there is no other status to answer with: a stream tells its end itself.
            if (when := self._deadline.when()) is not None and not self._deadline.expired():
                self._deadline.reschedule(when + GRACE_SECONDS)
        self.whole |= message["type"] == "http.response.body" and not message.get("more_body")
        await self._send(message)


class _Gate:
    """How many requests of a kind are at work, and how many more are let in to wait."""

    def __init__(self, most: int, share: int) -> None:
        self.places = Places(most, share)
        self.inside: Counter[str] = Counter()
        self._most, self._share = 2 * most, 2 * share

    def full_for(self, tenant: str) -> bool:
        """Say whether no more of a tenant are let in."""
        return self.inside.total() >= self._most or self.inside[tenant] >= self._share


class Admission:
    """Lets requests in: so many at once, each of a bounded size and depth, for a bounded time.

    A request's body is read before its work starts. From then on the connection is watched: where
    the client goes, the work is cancelled.

    Args:
        app: What answers.
        max_body_bytes: The largest body; 413 beyond.
        larger: Path to the largest body of its requests, where that is more.
        max_concurrency: How many POST requests are worked on at once; as many more wait, and the
            others are sent away with 503. The same holds for requests of other methods among
            themselves, but not for what anyone may read: that the service lives is told always.
        tenant_concurrency: How many of these are one tenant's; all by default.
        request_seconds: How long one may take, waiting included; 504 beyond.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        max_body_bytes: int,
        max_concurrency: int,
        request_seconds: float,
        tenant_concurrency: int | None = None,
        larger: Mapping[str, int] | None = None,
    ) -> None:
        self._app = app
        self._bytes = max_body_bytes
        self._larger = dict(larger or {})
        self._seconds = request_seconds
        share = tenant_concurrency or max_concurrency
        self._posts = _Gate(max_concurrency, share)
        self._others = _Gate(max_concurrency, share)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        gate = self._posts if scope["method"] == "POST" else self._others
        if is_open(scope):
            await self._bounded(scope, receive, send, nullcontext())
            return
        tenant = tenant_of(scope)
        if gate.full_for(tenant):
            busy = problem_response(503, "Too many requests are under way.", {"Retry-After": "1"})
            await busy(scope, receive, send)
        else:
            gate.inside[tenant] += 1
            # Threads of calls are counted by whose they are, too.
            whose = owner.set(tenant)
            try:
                await self._bounded(scope, receive, send, gate.places.one_of(tenant))
            finally:
                owner.reset(whose)
                gate.inside[tenant] -= 1

    async def _bounded(self, scope: Scope, receive: Receive, send: Send, place: _Place) -> None:
        deadline = asyncio.get_running_loop().time() + self._seconds
        scope.setdefault("state", {})["deadline"] = deadline
        timeout = asyncio.timeout_at(deadline)
        reply = _Reply(send, timeout)
        try:
            async with timeout:
                body = await self._body(scope, receive)
                if why := await _why_not_parsed(body):
                    raise RefusedError(422, why)
                await self._watched(scope, receive, reply, body, place)
        except RefusedError as error:
            if reply.begun:
                raise
            refused = problem_response(error.status, str(error), error.headers)
            await refused(scope, receive, send)
        except _GoneError:
            return
        except TimeoutError:
            if not timeout.expired():
                raise
            if reply.begun:
                log.warning("A stream was cut: it went on after its time.")
                return
            detail = f"It took longer than {self._seconds:g} s. Ask something smaller."
            await problem_response(504, detail)(scope, receive, send)

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        headers = Headers(scope=scope)
        most = max(self._bytes, self._larger.get(scope["path"], 0))
        detail = f"The request's body is larger than {most:,} bytes. Send less."
        too_large = RefusedError(413, detail, {"Connection": "close"})
        declared = headers.get("content-length", "0")
        if declared.isdecimal() and int(declared) > most:
            # One that asks before it sends has sent nothing yet.
            if headers.get("expect", "").lower() != "100-continue":
                await _thrown_away(receive)
            raise too_large
        parts: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _GoneError
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > most:
                if message.get("more_body"):
                    await _thrown_away(receive)
                raise too_large
            if not message.get("more_body"):
                return b"".join(parts)

    async def _watched(
        self, scope: Scope, receive: Receive, reply: _Reply, body: bytes, place: _Place
    ) -> None:
        """Work on a request for as long as its client is there."""
        unread = [body]
        gone = asyncio.ensure_future(_disconnected(receive))

        async def reading() -> Message:
            if unread:
                return {"type": "http.request", "body": unread.pop(), "more_body": False}
            await asyncio.shield(gone)
            return {"type": "http.disconnect"}

        async def working() -> None:
            async with place:
                await self._app(scope, reading, reply)

        work = asyncio.ensure_future(working())
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            # A whole response ends the connection's part too, before its work is quite over.
            if work.done() or reply.whole:
                await work
        finally:
            gone.cancel()
            if not work.done():
                work.cancel()
                await asyncio.wait({work}, timeout=CANCEL_SECONDS)
            if work.done() and not work.cancelled():
                # Whoever could be told is gone.
                work.exception()


async def _thrown_away(receive: Receive) -> None:
    """Read what is left of a body, as far as that may go.

    Raises:
        _GoneError: The client is gone.
    """
    left = UNREAD_BYTES
    with suppress(TimeoutError):
        async with asyncio.timeout(UNREAD_SECONDS):
            while left > 0:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise _GoneError
                left -= len(message.get("body", b""))
                if not message.get("more_body"):
                    return


async def _why_not_parsed(body: bytes) -> str:
    if len(body) > LARGE_BYTES:
        return await asyncio.to_thread(why_not_parsed, body)
    return why_not_parsed(body)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
