"""A server with the part of Qdrant's REST API that stores use; a test can make it fail.

Its answers come from qdrant-client's local mode in this process, or from a real server, on which
each ``QdrantServer`` uses its own collections.
"""

from __future__ import annotations

import json
import re
import socket
import struct
import sys
import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

#: The status of a failure that resets the connection instead of answering.
RESET = 0


class Upstream(Protocol):
    """Answers requests with a status and JSON text."""

    def answer(self, method: str, path: str, query: str, body: bytes) -> tuple[int, bytes]: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


@dataclass
class Fault:
    status: int
    times: int
    path: str
    after: int
    headers: Mapping[str, str]


@dataclass
class QdrantServer:
    """A server at ``url`` that runs until its context ends.

    Attributes:
        upstream: The source of the answers; ``None`` for local mode.
        api_key: The key that every request must have, if it is not empty.
        slow: The delay of requests in seconds, by the end of their path.
        requests: All requests, in order.
        most_at_once: The maximum number of concurrent upserts.
    """

    upstream: Upstream | None = None
    api_key: str = ""
    slow: dict[str, float] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    most_at_once: int = 0

    def __enter__(self) -> QdrantServer:
        self._upstream = self.upstream or LocalMode()
        self._faults: list[Fault] = []
        self._lost: list[tuple[str, str]] = []
        self._lock = threading.Lock()
        self._upserts = 0
        self._http = _Http(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
        self._upstream.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    def fail(
        self,
        status: int,
        times: int = 10**9,
        *,
        path: str = "",
        after: int = 0,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Answer requests with an error status, or ``RESET`` their connections.

        Args:
            status: The HTTP status, or ``RESET``.
            times: Number of requests that fail.
            path: The end of the path of these requests.
            after: Number of such requests that succeed before.
            headers: Headers of the answers.
        """
        self._faults.append(Fault(status, times, path, after, headers or {}))

    def lose_answer(self, path: str, *, method: str) -> None:
        """Execute the next such request, but reset the connection instead of answering."""
        self._lost.append((method, path))

    def requests_to(self, method: str, path: str) -> list[Request]:
        """Return the requests of a method whose path ends with ``path``."""
        return [r for r in self.requests if r.method == method and r.path.endswith(path)]

    def _respond(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Any:
        """Return status, headers and body of an answer; ``None`` for a reset."""
        url = urlsplit(target)
        is_upsert = method == "PUT" and url.path.endswith("/points")
        with self._lock:
            self.requests.append(
                Request(method, url.path, dict(headers), json.loads(body) if body else None)
            )
            self._upserts += is_upsert
            self.most_at_once = max(self.most_at_once, self._upserts)
        try:
            time.sleep(sum(s for end, s in self.slow.items() if url.path.endswith(end)))
            if self.api_key and headers.get("api-key") != self.api_key:
                return 401, {}, b"Must provide an API key or an Authorization bearer token"
            if (fault := self._fault(url.path)) is not None:
                if fault.status == RESET:
                    return None
                return fault.status, fault.headers, _error("failure on demand")
            status, answer = self._upstream.answer(method, url.path, url.query, body)
            for lost in self._lost:
                if lost[0] == method and url.path.endswith(lost[1]):
                    self._lost.remove(lost)
                    return None
            return status, {}, answer
        finally:
            with self._lock:
                self._upserts -= is_upsert

    def _fault(self, path: str) -> Fault | None:
        with self._lock:
            for fault in self._faults:
                if not fault.times or not path.endswith(fault.path):
                    continue
                if fault.after:
                    fault.after -= 1
                    continue
                fault.times -= 1
                return fault
        return None


class _Http(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *arguments: Any) -> None:
        # A client may disconnect before it gets the answer.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(*arguments)


def _handler(server: QdrantServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            response = server._respond(self.command, self.path, self.headers, body)
            if response is None:
                linger = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                return
            status, headers, content = response
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_PUT = do_POST = do_DELETE = answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    return Handler


class LocalMode:
    """Answers by qdrant-client's local mode, with the server's rules for JSON numbers."""

    def __init__(self) -> None:
        from qdrant_client import QdrantClient

        self._client = QdrantClient(":memory:")
        self._lock = threading.Lock()

    def answer(self, method: str, path: str, query: str, body: bytes) -> tuple[int, bytes]:
        from pydantic import ValidationError
        from pydantic_core import to_json

        parts = [unquote(part) for part in path.split("/")[2:]]
        name = parts[0] if parts else ""
        call = getattr(self, "_".join([method.lower(), *parts[1:]]))
        try:
            content = _serde(body) if body else None
            with self._lock:
                result = call(name, content)
        except (ValidationError, RecursionError) as error:
            return 400, _error(f"Format error in JSON body: {error}")
        except ValueError as error:
            return _refusal(str(error), name)
        return 200, to_json({"result": result, "status": "ok", "time": 0.0})

    def close(self) -> None:
        self._client.close()

    def get(self, name: str, _: Any) -> Any:
        return self._client.get_collection(name) if name else self._client.get_collections()

    def get_exists(self, name: str, _: Any) -> Any:
        return {"exists": self._client.collection_exists(name)}

    def put(self, name: str, body: Any) -> Any:
        from qdrant_client import models

        settings = models.CreateCollection(**body)
        return self._client.create_collection(
            name, vectors_config=settings.vectors, metadata=settings.metadata
        )

    def delete(self, name: str, _: Any) -> Any:
        return self._client.delete_collection(name)

    def put_index(self, name: str, body: Any) -> Any:
        from qdrant_client import models

        models.CreateFieldIndex(**body)
        self._client.get_collection(name)
        return {"operation_id": 0, "status": "completed"}

    def put_points(self, name: str, body: Any) -> Any:
        from pydantic import TypeAdapter
        from qdrant_client import models

        insert: Any = TypeAdapter(models.PointInsertOperations).validate_python(body)
        return self._client.upsert(name, insert.batch if "batch" in body else insert.points)

    def post_points(self, name: str, body: Any) -> Any:
        from qdrant_client import models

        request = models.PointRequest(**body)
        return self._client.retrieve(
            name,
            request.ids,
            with_payload=request.with_payload,
            with_vectors=request.with_vector or False,
        )

    def post_points_query(self, name: str, body: Any) -> Any:
        from qdrant_client import models

        request = models.QueryRequest(**body)
        request.params = None
        return self._client.query_batch_points(name, [request])[0]

    def post_points_query_batch(self, name: str, body: Any) -> Any:
        return [self.post_points_query(name, search) for search in body["searches"]]

    def post_points_scroll(self, name: str, body: Any) -> Any:
        from qdrant_client import models

        request = models.ScrollRequest(**body)
        points, next_offset = self._client.scroll(
            name,
            scroll_filter=request.filter,
            limit=request.limit or 10,
            offset=request.offset,
            with_payload=request.with_payload,
            with_vectors=request.with_vector or False,
        )
        return {"points": points, "next_page_offset": next_offset}

    def post_points_count(self, name: str, body: Any) -> Any:
        from qdrant_client import models

        return self._client.count(name, models.CountRequest(**body).filter)

    def post_points_delete(self, name: str, body: Any) -> Any:
        return self._client.delete(name, body["points"])


class RealServer:
    """Answers by a real server; collections get a prefix there, and are removed at the end."""

    def __init__(self, url: str, api_key: str = "") -> None:
        import httpx

        headers = {"api-key": api_key} if api_key else {}
        self._client = httpx.Client(base_url=url, headers=headers, timeout=60)
        self._prefix = f"casewright-test-{uuid.uuid4().hex[:12]}-"

    def answer(self, method: str, path: str, query: str, body: bytes) -> tuple[int, bytes]:
        path = re.sub("^/collections/", f"/collections/{self._prefix}", path)
        headers = {"Content-Type": "application/json"} if body else {}
        answer = self._client.request(
            method, path, params=query, content=body or None, headers=headers
        )
        return answer.status_code, answer.content.replace(self._prefix.encode(), b"")

    def close(self) -> None:
        for collection in self._client.get("/collections").json()["result"]["collections"]:
            if collection["name"].startswith(self._prefix):
                self._client.delete(f"/collections/{collection['name']}")
        self._client.close()


def _error(reason: str) -> bytes:
    return json.dumps({"status": {"error": reason}, "time": 0.0}).encode()


def _refusal(reason: str, name: str) -> tuple[int, bytes]:
    """Return the server's answer to a request for which local mode raises ``ValueError``."""
    if reason == f"Collection {name} not found":
        return 404, _error(f"Not found: Collection `{name}` doesn't exist!")
    if reason == f"Collection {name} already exists":
        return 409, _error(f"Wrong input: Collection `{name}` already exists!")
    return 400, _error(f"Wrong input: {reason}")


def _serde(body: bytes) -> Any:
    """Return a JSON value with the limits of the server's ``serde_json``: 64 bits, 127 levels."""
    depth = 0
    for mark in re.sub(rb'"(?:[^"\\]|\\.)*"', b"", body):
        depth += {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}.get(mark, 0)
        if depth > 127:
            raise RecursionError("recursion limit exceeded")

    def whole(text: str) -> int | float:
        number = int(text)
        return number if -(2**63) <= number < 2**64 else float(number)

    return json.loads(body, parse_int=whole, parse_float=_fraction)


def _fraction(text: str) -> float:
    """Return a number with the two roundings of ``serde_json`` without ``float_roundtrip``."""
    sign, digits, decimals, exponent = re.fullmatch(  # type: ignore[union-attr]
        r"(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?", text
    ).groups()
    decimals = decimals or ""
    significand, dropped = digits + decimals, 0
    while int(significand) >= 2**64:
        significand, dropped = significand[:-1], dropped + 1
    power = int(exponent or 0) - len(decimals) + dropped
    number = float(int(significand))
    while power < -308 and number:
        number, power = number / 1e308, power + 308
    if number:
        number = number * 10.0**power if power >= 0 else number / 10.0**-power
    return -number if sign else number
