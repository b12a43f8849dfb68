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

INCOMPLETE = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Half: "


@contextmanager
def limit_open_files(limit: int) -> Iterator[None]:
    """Limit the open files of this process, and of processes started meanwhile."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def open_connection(server: Served, data: bytes = INCOMPLETE) -> socket.socket:
    address = httpx.URL(server.url)
    connection = socket.create_connection((address.host, address.port), timeout=5)
    connection.sendall(data)
    return connection


def read_log(server: Served) -> str:
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
    with ExitStack() as stack:
        with limit_open_files(256):
            server = stack.enter_context(served(tmp_path))
        for _ in range(400):
            stack.enter_context(open_connection(server))
        with server.client() as client:
            for _ in range(5):
                assert client.get("/healthz", timeout=3).status_code == 200
                assert client.post("/ask", json={"question": QUICK}).status_code == 200
        log = read_log(server)
    assert "Too many open files" not in log
    assert "a quiet connection is closed" in log
    assert len(log.splitlines()) < 60


def test_simultaneous_connections_exceed_their_limit_by_few() -> None:
    limit = 30
    listener = listening_socket("127.0.0.1", 0)
    clients: list[socket.socket] = []
    connection_counts: list[int] = []

    async def flood(before: int) -> None:
        """Open more connections in each turn of the event loop than may be accepted."""
        for _ in range(20):
            for _ in range(BACKLOG):
                clients.append(socket.socket())
                clients[-1].setblocking(False)
                clients[-1].connect_ex(listener.getsockname())
            await asyncio.sleep(0)
            connection_counts.append(len(os.listdir("/dev/fd")) - before - len(clients))
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
        # The shutdown waits this long for connections that clients opened meanwhile.
        run(app, listener, max_connections=limit, shutdown_seconds=1, log_level="error")
    finally:
        for client in clients:
            client.close()
    assert limit < max(connection_counts) <= limit + 3 * MAX_ACCEPTED


@pytest.fixture(scope="module")
def impatient_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(
        tmp_path_factory.mktemp("hasty"),
        serving={"header_seconds": 1.0, "max_connections_per_address": 3},
    ) as server:
        yield server


@pytest.mark.parametrize(
    "data",
    [
        b"",
        INCOMPLETE,
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /hea",
        # The service refuses this at once; the rest of the body never arrives.
        b"POST /ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000\r\n\r\nx",
    ],
    ids=["nothing", "half of the headers", "half of a second request", "half of a refused body"],
)
def test_connection_with_an_incomplete_request_is_closed_although_bytes_arrive(
    impatient_service: Served, data: bytes
) -> None:
    with open_connection(impatient_service, data) as connection:
        start = time.monotonic()

        def is_closed_after_a_byte() -> bool:
            try:
                connection.send(b"x")
            except ConnectionError:
                return True
            return is_closed(connection)

        until(is_closed_after_a_byte, 6)
        assert time.monotonic() - start > 0.5


def test_connection_of_a_running_request_is_not_closed(impatient_service: Served) -> None:
    with impatient_service.client() as client:
        assert client.post("/ask", json=plan("s1 = slow(b=1.6)")).status_code == 200


def test_address_above_its_limit_loses_an_idle_connection_and_no_running_request(
    impatient_service: Served,
) -> None:
    body = b'{"question": "please plan: s1 = slow(b=1.5)"}'
    head = f"POST /ask HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ACME}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    request = head.encode() + body
    before = impatient_service.count_events("slow")
    with ExitStack() as stack:
        running = stack.enter_context(open_connection(impatient_service, request))
        until(lambda: impatient_service.count_events("slow") == before + 1)
        older = stack.enter_context(open_connection(impatient_service))
        newer = stack.enter_context(open_connection(impatient_service))
        stack.enter_context(open_connection(impatient_service))
        assert until(lambda: is_closed(older))
        assert not is_closed(newer)
        for _ in range(2):
            stack.enter_context(open_connection(impatient_service, request))
        until(lambda: impatient_service.count_events("slow") == before + 3)
        refused = stack.enter_context(open_connection(impatient_service, b""))
        assert refused.recv(100).startswith(b"HTTP/1.1 503 ")
        running.settimeout(5)
        assert running.recv(100).startswith(b"HTTP/1.1 200 ")


def test_ipv6_addresses_of_one_network_are_counted_together() -> None:
    assert network_of("2001:db8::1") == network_of("2001:db8::ffff:1")
    assert network_of("2001:db8::1") != network_of("2001:db8:0:1::1")
    assert network_of("::ffff:192.0.2.1") == network_of("192.0.2.1") == "192.0.2.1"


def test_limit_of_connections_depends_on_the_limit_of_open_files() -> None:
    assert connection_limit(5) == 5
    with limit_open_files(256):
        assert 50 < connection_limit(1000) < 192
    with limit_open_files(20), pytest.raises(InputError, match="ulimit -n"):
        connection_limit(1000)


def test_repeated_log_line_of_one_source_line_is_omitted_and_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def log_failure(number: int) -> None:
        logging.getLogger("casewright.service").warning("It failed: %s", number)

    line_filter = RepeatedLineFilter(limit=2, seconds=0.2)
    caplog.handler.addFilter(line_filter)
    try:
        for number in range(9):
            log_failure(number)
        logging.getLogger("casewright.service").warning("Another place.")
        time.sleep(0.2)
        log_failure(9)
    finally:
        caplog.handler.removeFilter(line_filter)
    last = "It failed: 9 (7 similar ones omitted.)"
    assert caplog.messages == ["It failed: 0", "It failed: 1", "Another place.", last]
