from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from casewright.errors import InputError, StoreUnavailableError
from casewright.stores import CaseStore
from casewright.stores.engines.server_options import ServerOptions
from tests.stores.helpers import note, note_schema
from tests.support.qdrant_server import RESET, QdrantServer


@contextmanager
def serve_response(
    status: int, body: bytes, kind: str = "application/json", *, collections: bool = False
) -> Iterator[str]:
    """Serve one response to all requests, or with ``collections`` to all but ``/collections``."""
    empty = b'{"result": {"collections": []}, "status": "ok", "time": 0}'

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_list = collections and self.path == "/collections"
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(200 if is_list else status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(empty if is_list else body)))
            self.end_headers()
            self.wfile.write(empty if is_list else body)

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


def check_unavailable(url: str, message: str, seconds: float) -> None:
    start = time.monotonic()
    with pytest.raises(StoreUnavailableError, match=message):
        CaseStore(note_schema(), url)
    assert time.monotonic() - start < seconds


def test_refused_connection_raises_store_unavailable_error_within_five_seconds() -> None:
    with socket.socket() as bound_socket:
        bound_socket.bind(("127.0.0.1", 0))  # without listening: connections are refused
        url = f"http://127.0.0.1:{bound_socket.getsockname()[1]}"
        check_unavailable(url, url, 5)


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
                CaseStore(note_schema(), f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=2)
            except StoreUnavailableError as error:
                self.error = error
        self.seconds = time.monotonic() - start


@pytest.fixture(scope="module")
def opening() -> Opening:
    """Return one attempt for two tests, because it takes the client's whole timeout."""
    thread = Opening()
    thread.start()
    time.sleep(0.3)
    return thread


def test_silent_server_does_not_block_opening_a_folder(opening: Opening, tmp_path: Path) -> None:
    assert opening.is_alive()
    start = time.monotonic()
    with CaseStore(note_schema(), tmp_path) as store:
        assert store.count() == 0
    assert time.monotonic() - start < 2


def test_silent_server_raises_store_unavailable_error_in_bounded_time(opening: Opening) -> None:
    opening.join(25)
    assert "does not answer" in str(opening.error)
    assert 1 < opening.seconds < 8


def test_unknown_host_raises_store_unavailable_error() -> None:
    check_unavailable("http://no-such-host.invalid:6333", "no-such-host.invalid", 20)


@pytest.mark.parametrize("status", [401, 403, 404, 500, 503])
def test_error_status_of_server_raises_store_unavailable_error_with_status(status: int) -> None:
    with serve_response(status, b'{"status": {"error": "the reason"}}') as url:
        check_unavailable(url, f"{status}.*the reason", 10)


@pytest.mark.parametrize(
    ("body", "kind"),
    [(b"<html>hello</html>", "text/html"), (b"{}", "application/json"), (b"", "application/json")],
    ids=["html", "other json", "nothing"],
)
def test_server_other_than_qdrant_raises_store_unavailable_error(body: bytes, kind: str) -> None:
    with serve_response(200, body, kind) as url:
        check_unavailable(url, url, 10)


def test_read_is_retried_after_a_temporary_failure(server: QdrantServer) -> None:
    with CaseStore(note_schema(), server.url) as store:
        id_, *_ = store.add([note(f"question {i}", i) for i in range(6)])
        calls: dict[str, Callable[[], bool]] = {
            "/query": lambda: len(store.search("question", 3)) == 3,
            "/query/batch": lambda: store.select("question", 2, candidates=4).searches > 1,
            "/count": lambda: store.count() == 6,
            "/scroll": lambda: len(store.all()) == 6,
            "/points": lambda: len(store.get(id_)) == 1,
            "/collections/notes": lambda: store.retain(note("new")).outcome == "added",
        }
        for path, call in calls.items():
            server.fail(RESET if path == "/count" else 503, 1, path=path)
            before = len(server.requests)
            assert call(), path
            assert len([r for r in server.requests[before:] if r.path.endswith(path)]) > 1, path


def test_read_gives_up_after_about_the_timeout_of_one_request(server: QdrantServer) -> None:
    with CaseStore(note_schema(), server.url, timeout=2) as store:
        store.add([note("q")])
        server.fail(503, path="/count", headers={"Retry-After": "30"})
        start = time.monotonic()
        with pytest.raises(StoreUnavailableError, match="503"):
            store.count()
        server.slow["/query"] = 3
        with pytest.raises(StoreUnavailableError, match="does not answer"):
            store.search("q")
        assert time.monotonic() - start < 5


def test_error_message_has_the_number_of_tries_unless_retries_are_off(server: QdrantServer) -> None:
    server.fail(503)
    with pytest.raises(StoreUnavailableError, match=r"busy.*503.*tried 3 times in \d"):
        CaseStore(note_schema(), server.url)
    with pytest.raises(StoreUnavailableError) as exc_info:
        CaseStore(note_schema(), server.url, server=ServerOptions(retries=0))
    assert "tried" not in str(exc_info.value)
    assert len(server.requests) == 4


def test_collection_is_used_if_the_response_to_its_creation_was_lost(server: QdrantServer) -> None:
    """The server refuses the second request, because the first one created the collection."""
    with CaseStore(note_schema(), server.url) as store:
        server.lose_answer("/collections/notes", method="PUT")
        store.add([note("q")])
        assert store.count() == 1
    assert len(server.requests_to("PUT", "/collections/notes")) == 2
    assert len(server.requests_to("PUT", "/index")) == 1


def test_write_and_delete_with_a_lost_response_take_effect_once(server: QdrantServer) -> None:
    with CaseStore(note_schema(), server.url) as store:
        server.lose_answer("/points", method="PUT")
        (id_,) = store.add([note("q")])
        assert store.count() == 1
        server.lose_answer("/points/delete", method="POST")
        store.delete(id_)
        assert store.count() == 0


@pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")
def test_refused_api_key_raises_an_error_without_showing_the_key(server: QdrantServer) -> None:
    server.api_key = "the right key"
    for key in (None, "the-wrong-word"):
        with pytest.raises(StoreUnavailableError, match=r"API key.*401.*api_key=") as exc_info:
            CaseStore(note_schema(), server.url, api_key=key)
        assert "wrong-word" not in str(exc_info.value)
    with CaseStore(note_schema(), server.url, api_key="the right key") as store:
        store.add([note("q")])
        assert store.count() == 1
    assert len(server.requests_to("GET", "/collections")) == 3


@pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")
@pytest.mark.parametrize("status", [400, 403, 503])
def test_error_does_not_show_secrets_repeated_by_the_server(status: int) -> None:
    body = b'{"status": {"error": "no: wordofpass1 and wordofpass2"}}'
    options = ServerOptions(client={"headers": {"x-proxy": "wordofpass2"}}, retries=1)
    with serve_response(status, body) as url, pytest.raises(StoreUnavailableError) as exc_info:
        CaseStore(note_schema(), url, api_key="wordofpass1", server=options)
    assert "wordofpass" not in str(exc_info.value)
    assert str(status) in str(exc_info.value)


def test_where_refuses_numbers_above_64_bits_on_a_server(server: QdrantServer) -> None:
    with CaseStore(note_schema(), server.url) as store:
        store.add([note("q", metadata={"large": 2**63})])
        for condition in (2**63, [1, -(2**63) - 1], {"not": 2**70}):
            with pytest.raises(InputError, match="64 bits"):
                store.count({"large": condition})


@pytest.mark.parametrize("url", ["http://", "http://localhost:port", "http://127.0.0.1:99999"])
def test_invalid_url_raises_input_error(url: str) -> None:
    with pytest.raises(InputError, match=url):
        CaseStore(note_schema(), url)


def test_missing_collection_on_a_server_counts_as_empty() -> None:
    body = b'{"status": {"error": "Not found: Collection `notes` doesn\'t exist!"}, "time": 0}'
    with serve_response(404, body, collections=True) as url, CaseStore(note_schema(), url) as store:
        assert (store.count(), store.all(), store.search("q")) == (0, [], [])
        assert store.get("6f9619ff-8b86-d011-b42d-00c04fc964ff") == []
        store.delete("6f9619ff-8b86-d011-b42d-00c04fc964ff")
