"""Runs the service, with its socket, signals, shutdown and log."""

from __future__ import annotations

import errno
import logging
import math
import os
import socket
import sys
import time
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI

from casewright.errors import InputError, StoreError
from casewright.serve.service.connections import (
    BACKLOG,
    MAX_ACCEPTED,
    BoundedProtocol,
    Connections,
    connection_limit,
)

#: Time for cancelled work to end after a request's deadline; then the connection is closed.
END_SECONDS = 15.0
LOG_FORMAT = "%(levelname)s %(name)s: %(message)s"
#: Maximum number of log lines from one place in the code within WINDOW_SECONDS.
MAX_LINES = 20
WINDOW_SECONDS = 60.0


class _Server(uvicorn.Server):
    """A server that, at a signal, waits until open requests end, and then exits normally.

    With its own ``handle_exit``, Uvicorn would raise the signal again and so kill the process.
    """

    def __init__(self, config: uvicorn.Config, connections: Connections) -> None:
        super().__init__(config)
        self._connections = connections

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or ():
            # asyncio uses Uvicorn's ``backlog`` as the number of connections that it accepts at a
            # time, and as the socket's backlog. This call sets the socket's backlog again.
            listener.listen(BACKLOG)

    async def on_tick(self, counter: int) -> bool:
        if counter % 10 == 0:  # Uvicorn ticks ten times a second.
            self._connections.end_overdue()
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # LangServe's sse-starlette replaces ``uvicorn.Server.handle_exit`` to end streams at once.
        # It does not replace this override, so only a second signal ends open requests at once.
        self.force_exit = self.should_exit
        self.should_exit = True


def listening_socket(host: str, port: int, *, share: bool = False) -> socket.socket:
    """Return a listening socket; port 0 takes a free port.

    With ``share``, other services of this user can also listen on the port: the system gives each
    new connection to one of the services. Raise ``InputError`` if listening fails.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server(
            (host, port), family=family, backlog=BACKLOG, reuse_port=share
        )
    except (OSError, OverflowError) as error:
        raise InputError(_listen_error(host, port, error)) from error
    # Connections inherit TCP_NODELAY; asyncio sets it only on sockets that name TCP as protocol.
    # Without TCP_NODELAY, a body would wait some 40 ms until its headers are acknowledged.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _listen_error(host: str, port: int, error: OSError | OverflowError) -> str:
    # create_server raises an error of its own, whose context is the original error.
    if isinstance(error.__context__, socket.gaierror):
        return f"The host {host} is unknown: give another by --host."
    if isinstance(error, OverflowError):
        return f"{port} is not a port: give one from 0 to 65535 by --port."
    advice = "give another by --port; --port 0 takes a free one."
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} of {host} is taken: {advice}"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"This user may not listen on port {port} of {host}: {advice}"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is not an address of this machine: give another by --host."
    reason = os.strerror(error.errno) if error.errno else str(error)
    return f"Listening on {host}:{port} failed: {reason}. Give another --host or --port."


def run(
    app: FastAPI,
    server_socket: socket.socket,
    *,
    shutdown_seconds: float = 30.0,
    request_seconds: float = 60.0,
    header_seconds: float = 10.0,
    max_connections: int = 1000,
    max_connections_per_address: int = 256,
    log_level: str = "info",
) -> None:
    """Serve until a signal; open requests then have ``shutdown_seconds`` to end.

    A connection without a request is closed after ``header_seconds``.

    Raises:
        InputError: The limit on the process's open files is too low.
        StoreError: The service could not start.
    """
    configure_logging(log_level)
    connections = Connections(
        connection_limit(max_connections),
        max_connections_per_address,
        header_seconds,
        request_seconds + END_SECONDS,
    )
    # Uvicorn calls this function in place of a protocol class.
    protocol: Any = partial(BoundedProtocol, connections=connections)
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        backlog=MAX_ACCEPTED,
        log_config=None,
        log_level=log_level,
        access_log=log_level == "debug",
        lifespan="on",
        server_header=False,
        timeout_graceful_shutdown=math.ceil(shutdown_seconds),
    )
    host, port = server_socket.getsockname()[:2]
    address = f"[{host}]" if ":" in host else host
    print(f"Serving on http://{address}:{port} (docs at /docs)", file=sys.stderr, flush=True)
    server = _Server(config, connections)
    with server_socket:
        server.run(sockets=[server_socket])
    if not server.started:
        raise StoreError("The service could not start; see the lines above.")


@dataclass(slots=True)
class _Window:
    """A time window for the log lines of one place and exception class."""

    end_time: float
    written_count: int = 0
    omitted_count: int = 0


class RepeatedLineFilter(logging.Filter):
    """A filter that omits log lines that one place in the code writes too often.

    Otherwise, an error in every request would fill the disk. A time window counts the lines with
    the same place and exception class; the first line after the window states the omitted number.
    """

    def __init__(self, limit: int = MAX_LINES, seconds: float = WINDOW_SECONDS) -> None:
        super().__init__()
        self._limit, self._seconds = limit, seconds
        self._windows: dict[tuple[object, ...], _Window] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return ``True`` if the line is written."""
        error_class = record.exc_info[0] if record.exc_info else None
        origin = (record.name, record.pathname, record.lineno, error_class)
        now = time.monotonic()
        window = self._windows.get(origin)
        if window is None or now >= window.end_time:
            if window is not None and window.omitted_count:
                note = f"({window.omitted_count:,} similar ones omitted.)"
                record.msg = f"{record.getMessage()} {note}"
                record.args = ()
            window = self._windows[origin] = _Window(now + self._seconds)
        if window.written_count >= self._limit:
            window.omitted_count += 1
            return False
        window.written_count += 1
        return True


def configure_logging(level: str) -> None:
    """Write log lines of at least this level to stderr; only ``debug`` keeps all repeated lines."""
    handler = logging.StreamHandler(sys.stderr)
    if level != "debug":
        handler.addFilter(RepeatedLineFilter())
    logging.basicConfig(level=level.upper(), format=LOG_FORMAT, handlers=[handler])
    for library in ("httpx", "httpcore", "mcp"):
        logging.getLogger(library).setLevel(logging.WARNING)
