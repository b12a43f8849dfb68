from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from casewright.errors import InputError, StoreUnavailableError
from casewright.stores import CaseStore
from tests.stores.helpers import note_schema


@contextmanager
def answering(
    status: int, body: bytes, kind: str = "application/json", *, collections: bool = False
) -> Iterator[str]:
    """A server that answers every request alike, or all but the one for its collections."""
    none = b'{"result": {"collections": []}, "status": "ok", "time": 0}'

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            listed = collections and self.path == "/collections"
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(200 if listed else status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(none if listed else body)))
            self.end_headers()
            self.wfile.write(none if listed else body)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def unavailable(url: str, told: str, seconds: float) -> None:
    start = time.monotonic()
    with pytest.raises(StoreUnavailableError, match=told):
        CaseStore(note_schema(), url)
    assert time.monotonic() - start < seconds


def test_server_that_refuses_connections_is_unavailable_at_once() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: connections are refused
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        unavailable(url, url, 5)


class Opening(threading.Thread):
    """Opens a store at a server that accepts connections and never answers."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.error: StoreUnavailableError | None = None
        self.seconds = 0.0

    def run(self) -> None:
        start = time.monotonic()
        with socket.create_server(("127.0.0.1", 0)) as silent:
            try:
                CaseStore(note_schema(), f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=3)
            except StoreUnavailableError as error:
                self.error = error
        self.seconds = time.monotonic() - start


@pytest.fixture(scope="module")
def opening() -> Opening:
    """One attempt for two tests: it takes the client's whole timeout."""
    thread = Opening()
    thread.start()
    time.sleep(0.3)
    return thread


def test_silent_server_does_not_keep_other_places_from_opening(
    opening: Opening, tmp_path: Path
) -> None:
    assert opening.is_alive()
    start = time.monotonic()
    with CaseStore(note_schema(), tmp_path) as store:
        assert store.count() == 0
    assert time.monotonic() - start < 2


def test_server_that_accepts_and_never_answers_is_unavailable_in_bounded_time(
    opening: Opening,
) -> None:
    opening.join(25)
    assert opening.error is not None
    assert "does not answer" in str(opening.error)
    assert 2 < opening.seconds < 8


def test_name_that_no_host_has_is_unavailable() -> None:
    unavailable("http://no-such-host.invalid:6333", "no-such-host.invalid", 20)


@pytest.mark.parametrize("status", [401, 403, 404, 500, 503])
def test_server_that_refuses_is_unavailable_with_its_status(status: int) -> None:
    with answering(status, b'{"status": {"error": "the reason"}}') as url:
        unavailable(url, f"{status}.*the reason", 10)


@pytest.mark.parametrize(
    ("body", "kind"),
    [(b"<html>hello</html>", "text/html"), (b"{}", "application/json"), (b"", "application/json")],
    ids=["html", "other json", "nothing"],
)
def test_server_that_is_no_qdrant_is_unavailable(body: bytes, kind: str) -> None:
    with answering(200, body, kind) as url:
        unavailable(url, url, 10)


@pytest.mark.parametrize("url", ["http://", "http://localhost:port", "http://127.0.0.1:99999"])
def test_url_that_is_none_is_refused_as_input(url: str) -> None:
    with pytest.raises(InputError, match=url):
        CaseStore(note_schema(), url)


def test_collection_that_a_server_has_not_counts_as_empty() -> None:
    gone = b'{"status": {"error": "Not found: Collection `notes` doesn\'t exist!"}, "time": 0}'
    with answering(404, gone, collections=True) as url, CaseStore(note_schema(), url) as store:
        assert (store.count(), store.all(), store.search("q")) == (0, [], [])
        assert store.get("6f9619ff-8b86-d011-b42d-00c04fc964ff") == []
        store.delete("6f9619ff-8b86-d011-b42d-00c04fc964ff")
