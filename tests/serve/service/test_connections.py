"""Incomplete requests neither block the service nor fill its log."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import signal
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from casewright.errors import InputError
from casewright.serve.service.connections import BACKLOG, MAX_ACCEPTED, connection_limit, network_of
from casewright.serve.service.server import RepeatedLineFilter, listening_socket, run
from tests.serve.service.helpers import ACME, QUICK, Served, plan, served
from tests.support.waiting import until

HALF = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Half: "


@contextmanager
def files_allowed(most: int) -> Iterator[None]:
    """What is started meanwhile may open no more files than that."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def connected(server: Served, sent: bytes = HALF) -> socket.socket:
    address = httpx.URL(server.url)
    connection = socket.create_connection((address.host, address.port), timeout=5)
    connection.sendall(sent)
    return connection


def log_of(server: Served) -> str:
    (log,) = server.log.parent.glob("stderr-*")
    return log.read_text()


def is_closed(connection: socket.socket) -> bool:
    connection.settimeout(0.01)
    try:
        return connection.recv(65_536) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def test_service_with_few_file_descriptors_answers_despite_400_incomplete_requests(
    tmp_path: Path,
) -> None:
    with ExitStack() as held:
        with files_allowed(256):
            server = held.enter_context(served(tmp_path))
        for _ in range(400):
            held.enter_context(connected(server))
        with server.client() as client:
            for _ in range(5):
                assert client.get("/healthz", timeout=3).status_code == 200
                assert client.post("/ask", json={"question": QUICK}).status_code == 200
        log = log_of(server)
    assert "Too many open files" not in log
    assert "a quiet connection is closed" in log
    assert len(log.splitlines()) < 60


def test_simultaneous_connections_exceed_their_limit_by_few() -> None:
    most = 30
    listener = listening_socket("127.0.0.1", 0)
    clients: list[socket.socket] = []
    opened: list[int] = []

    async def flood(before: int) -> None:
        """Connect more in each turn of the service's loop than it may accept."""
        for _ in range(20):
            for _ in range(BACKLOG):
                clients.append(socket.socket())
                clients[-1].setblocking(False)
                clients[-1].connect_ex(listener.getsockname())
            await asyncio.sleep(0)
            opened.append(len(os.listdir("/dev/fd")) - before - len(clients))
        signal.raise_signal(signal.SIGTERM)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        before = len(os.listdir("/dev/fd"))
        loop.call_later(0.2, lambda: tasks.append(loop.create_task(flood(before))))
        yield

    tasks: list[asyncio.Task[None]] = []
    try:
        app = FastAPI(lifespan=lifespan)
        # What connects while it ends is waited for as long.
        run(app, listener, max_connections=most, shutdown_seconds=1, log_level="error")
    finally:
        for client in clients:
            client.close()
    assert most < max(opened) <= most + 3 * MAX_ACCEPTED


@pytest.fixture(scope="module")
def impatient_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(
        tmp_path_factory.mktemp("hasty"),
        serving={"header_seconds": 1.0, "max_connections_per_address": 3},
    ) as running:
        yield running


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        HALF,
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /hea",
        # The refusal is sent; the rest of the body never comes.
        b"POST /ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000\r\n\r\nx",
    ],
    ids=["nothing", "half of the headers", "half of a second request", "half of a refused body"],
)
def test_connection_with_an_incomplete_request_is_closed_although_bytes_arrive(
    impatient_service: Served, sent: bytes
) -> None:
    with connected(impatient_service, sent) as connection:
        began = time.monotonic()

        def drips() -> bool:
            try:
                connection.send(b"x")
            except ConnectionError:
                return True
            return is_closed(connection)

        until(drips, 6)
        assert time.monotonic() - began > 0.5


def test_connection_of_a_running_request_is_not_closed(impatient_service: Served) -> None:
    with impatient_service.client() as client:
        assert client.post("/ask", json=plan("s1 = slow(b=1.6)")).status_code == 200


def test_address_above_its_limit_loses_an_idle_connection_and_no_running_request(
    impatient_service: Served,
) -> None:
    asked = b'{"question": "please plan: s1 = slow(b=1.5)"}'
    head = f"POST /ask HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ACME}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(asked)}\r\n\r\n"
    whole = head.encode() + asked
    before = impatient_service.did("slow")
    with ExitStack() as held:
        working = held.enter_context(connected(impatient_service, whole))
        until(lambda: impatient_service.did("slow") == before + 1)
        first = held.enter_context(connected(impatient_service))
        second = held.enter_context(connected(impatient_service))
        held.enter_context(connected(impatient_service))
        assert until(lambda: is_closed(first))
        assert not is_closed(second)
        for _ in range(2):
            held.enter_context(connected(impatient_service, whole))
        until(lambda: impatient_service.did("slow") == before + 3)
        refused = held.enter_context(connected(impatient_service, b""))
        assert refused.recv(100).startswith(b"HTTP/1.1 503 ")
        working.settimeout(5)
        assert working.recv(100).startswith(b"HTTP/1.1 200 ")


def test_addresses_of_one_network_of_ipv6_are_counted_together() -> None:
    assert network_of("2001:db8::1") == network_of("2001:db8::ffff:1")
    assert network_of("2001:db8::1") != network_of("2001:db8:0:1::1")
    assert network_of("::ffff:192.0.2.1") == network_of("192.0.2.1") == "192.0.2.1"


def test_limit_of_connections_depends_on_the_limit_of_open_files() -> None:
    assert connection_limit(5) == 5
    with files_allowed(256):
        assert 50 < connection_limit(1000) < 192
    with files_allowed(20), pytest.raises(InputError, match="ulimit -n"):
        connection_limit(1000)


def test_repeated_log_line_of_one_source_line_is_omitted_and_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def failed(number: int) -> None:
        logging.getLogger("casewright.service").warning("It failed: %s", number)

    few = RepeatedLineFilter(limit=2, seconds=0.2)
    caplog.handler.addFilter(few)
    try:
        for number in range(9):
            failed(number)
        logging.getLogger("casewright.service").warning("Another place.")
        time.sleep(0.2)
        failed(9)
    finally:
        caplog.handler.removeFilter(few)
    again = "It failed: 9 (7 similar ones omitted.)"
    assert caplog.messages == ["It failed: 0", "It failed: 1", "Another place.", again]
