"""A real HTTP server with OpenAI's chat completions; a test chooses the answers."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: The token counts of every completion.
USAGE = {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107}


@dataclass
class ReceivedRequest:
    """A received request, with methods to answer it.

    Attributes:
        body: The decoded JSON body.
        key: The request's API key.
        released: Set when the test ends; an answer that waits must wait for this event.
    """

    body: dict[str, Any]
    key: str
    released: threading.Event
    _handler: BaseHTTPRequestHandler

    def say(self, text: str | None) -> None:
        """Answer with a completion of this text; for a streaming request, as one event."""
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        completion: dict[str, Any] = {
            "id": "c",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
        }
        if self.body.get("stream"):
            event = {**completion, "object": "chat.completion.chunk"}
            event["choices"] = [{"index": 0, "delta": message, "finish_reason": "stop"}]
            self.send(200, f"data: {json.dumps(event)}\n\ndata: [DONE]\n\n", "text/event-stream")
        else:
            self.send(200, json.dumps({**completion, "choices": [choice], "usage": USAGE}))

    def send(self, status: int, body: str, kind: str = "application/json") -> None:
        """Answer with a status and a body."""
        self.begin(status, len(body.encode()), kind)
        self.write(body)

    def begin(self, status: int, length: int | None = None, kind: str = "application/json") -> None:
        """Send the headers of an answer; without ``length``, the body ends with the connection."""
        self._handler.send_response(status)
        self._handler.send_header("Content-Type", kind)
        if length is not None:
            self._handler.send_header("Content-Length", str(length))
        self._handler.end_headers()

    def write(self, text: str) -> None:
        """Send a part of the body."""
        self._handler.wfile.write(text.encode())
        self._handler.wfile.flush()

    def hang_up(self) -> None:
        """Close the connection; the client gets only the part that was sent."""
        self._handler.close_connection = True


Answer = Callable[[ReceivedRequest], None]


@dataclass
class ChatServer:
    """A running server.

    Attributes:
        url: The URL of its API.
        answer: A function that answers a request; a test may replace it.
        requests: All requests so far.
    """

    url: str
    answer: Answer
    requests: list[ReceivedRequest] = field(default_factory=list)


@contextmanager
def chat_server(*answers: str) -> Iterator[ChatServer]:
    """Yield a server that gives these answers in order, and then repeats the last one."""
    released = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            key = self.headers.get("Authorization", "").removeprefix("Bearer ")
            received = ReceivedRequest(body, key, released, self)
            server.requests.append(received)
            server.answer(received)

        def log_message(self, *arguments: Any) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *arguments: Any) -> None:
            """Print nothing for clients that disconnected."""

    def in_order(received: ReceivedRequest) -> None:
        received.say(answers[min(len(server.requests), len(answers)) - 1])

    with Quiet(("127.0.0.1", 0), Handler) as http:
        server = ChatServer(f"http://127.0.0.1:{http.server_port}/v1", in_order)
        # Check for the shutdown every 0.02 s.
        threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield server
        finally:
            released.set()
            http.shutdown()


def unused_url() -> str:
    """Return the URL of an API on a port on which no server listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}/v1"
