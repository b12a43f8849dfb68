"""A real HTTP server with OpenAI's chat completions, whose every answer a test decides."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: What it counts, whatever was sent.
USAGE = {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107}


@dataclass
class Heard:
    """A request, and how to answer it.

    Attributes:
        body: What was sent, decoded.
        key: The API key that came with it.
        released: Set when the test is over: nothing waits longer.
    """

    body: dict[str, Any]
    key: str
    released: threading.Event
    _handler: BaseHTTPRequestHandler

    def say(self, text: str | None) -> None:
        """Answer with a completion of this text, as one event where a stream is asked for."""
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
        """Answer with this body."""
        self.begin(status, len(body.encode()), kind)
        self.write(body)

    def begin(self, status: int, length: int | None = None, kind: str = "application/json") -> None:
        """Send the head of an answer that is this long; without a length it never ends."""
        self._handler.send_response(status)
        self._handler.send_header("Content-Type", kind)
        if length is not None:
            self._handler.send_header("Content-Length", str(length))
        self._handler.end_headers()

    def write(self, text: str) -> None:
        """Send a part of an answer's body."""
        self._handler.wfile.write(text.encode())
        self._handler.wfile.flush()

    def hang_up(self) -> None:
        """Close the connection after what was sent so far."""
        self._handler.close_connection = True


Answer = Callable[[Heard], None]


@dataclass
class ChatServer:
    """The server.

    Attributes:
        url: Of its API.
        answer: What it does with a request; a test puts its own here.
        heard: The requests so far.
    """

    url: str
    answer: Answer
    heard: list[Heard] = field(default_factory=list)


@contextmanager
def chat_server(*answers: str) -> Iterator[ChatServer]:
    """Serve until the block ends; these are its answers in their order, the last one over again."""
    released = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            key = self.headers.get("Authorization", "").removeprefix("Bearer ")
            heard = Heard(body, key, released, self)
            server.heard.append(heard)
            server.answer(heard)

        def log_message(self, *arguments: Any) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *arguments: Any) -> None:
            """Say nothing of clients that were gone."""

    def in_order(heard: Heard) -> None:
        heard.say(answers[min(len(server.heard), len(answers)) - 1])

    with Quiet(("127.0.0.1", 0), Handler) as http:
        server = ChatServer(f"http://127.0.0.1:{http.server_port}/v1", in_order)
        # Its loop looks for the end this often.
        threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield server
        finally:
            released.set()
            http.shutdown()


def nobody_there() -> str:
    """Return the URL of an API on a port where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
