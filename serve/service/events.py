"""Encodes the events of a run as server-sent events, and sends them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from casewright.graph.json_text import json_text
from casewright.serve.service.problems import problem, status_and_detail

MEDIA_TYPE = "text/event-stream"
#: If no event comes in this time, a comment is sent, so that proxies do not close the stream.
KEEP_ALIVE_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a stream, with JSON data; the module ``routes`` lists the events' names."""

    name: str
    data: Mapping[str, Any]

    def encode(self) -> bytes:
        """Return the event's lines."""
        # The JSON has no line breaks, so it is one line of data.
        return f"event: {self.name}\ndata: {json_text(self.data)}\n\n".encode()


async def event_lines(
    events: AsyncGenerator[Event, None], deadline: float, keep_alive: float = KEEP_ALIVE_SECONDS
) -> AsyncGenerator[bytes, None]:
    """Yield a run's events as bytes; after a failure or the deadline, the last event is ``error``.

    Args:
        events: The generator of the run's events. Closing it when the reader stops cancels the run.
        deadline: The time at which the run must end, by the event loop's clock.
        keep_alive: Seconds without an event after which a comment is sent.
    """
    queue: asyncio.Queue[Event | None] = asyncio.Queue()

    async def forward_events() -> None:
        # One task reads all events, since a run's cancel scopes must not change tasks.
        try:
            async with asyncio.timeout_at(deadline), aclosing(events):
                async for event in events:
                    queue.put_nowait(event)
        except Exception as error:  # noqa: BLE001 - the response has begun, so send an event
            queue.put_nowait(Event("error", problem(*status_and_detail(error))))
        finally:
            queue.put_nowait(None)  # the end

    task = asyncio.ensure_future(forward_events())
    try:
        while True:
            try:
                event = await asyncio.wait_for(queue.get(), keep_alive)
            except TimeoutError:
                yield b": still at work\n\n"
                continue
            if event is None:
                return
            yield event.encode()
    finally:
        task.cancel()
        await asyncio.wait({task})


class EventStream(Response):
    """A response of server-sent events; however it ends, it closes the generator of the events."""

    media_type = MEDIA_TYPE

    def __init__(self, content: AsyncGenerator[bytes, None]) -> None:
        super().__init__(None, 200, {"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._content = content

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events."""
        start_message = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        async with aclosing(self._content) as content:
            await send(start_message)
            async for chunk in content:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
