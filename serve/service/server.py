"""Running the service: its socket, its signals, its end."""

from __future__ import annotations

import errno
import math
import os
import socket
import sys
from functools import partial
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI

from casewright.errors import InputError, StoreError
from casewright.serve.service.connections import (
    BACKLOG,
    BoundedProtocol,
    Connections,
    room_for,
)
from casewright.serve.service.log_lines import write_log

#: How much longer than a request its connection may be at work: what is cancelled takes its time.
END_SECONDS = 15.0


class _Server(uvicorn.Server):
    """Ends when told to: open requests first, and by an exit code that says so.

    Uvicorn raises the signal once more at its end, so that the process would end by it. The method
    is not the one that sse-starlette, which LangServe imports, replaces: that one ends LangServe's
    streams as soon as a signal comes.
    """

    def __init__(self, config: uvicorn.Config, held: Connections) -> None:
        super().__init__(config)
        self._held = held

    async def on_tick(self, counter: int) -> bool:
        """Look after the connections, every second."""
        if counter % 10 == 0:
            self._held.end_overdue()
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop accepting; a second signal ends what is still open."""
        self.force_exit = self.should_exit
        self.should_exit = True


def listening(host: str, port: int, *, share: bool = False) -> socket.socket:
    """Return a socket that listens.

    Args:
        host: The address.
        port: The port; 0 takes a free one.
        share: Whether other services of this user may listen there too, if they say so as well:
            the system gives each new connection to one of them.

    Raises:
        InputError: The address cannot be listened on.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        opened = socket.create_server(
            (host, port), family=family, backlog=BACKLOG, reuse_port=share
        )
    except (OSError, OverflowError) as error:
        raise InputError(_refused(host, port, error)) from error
    # Connections inherit it. asyncio sets it only where a socket says that its protocol is TCP, and
    # this one leaves that open: a response's body would wait for the acknowledgement of its head,
    # which the client's system holds back for some 40 ms.
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return opened


def _refused(host: str, port: int, error: OSError | OverflowError) -> str:
    # create_server raises another error in place of what it met.
    if isinstance(error.__context__, socket.gaierror):
        return f"{host} is no host that is known here: give another by --host."
    if isinstance(error, OverflowError):
        return f"{port} is no port: give one from 0 to 65535 by --port."
    free = "give another by --port; --port 0 takes a free one."
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} of {host} is taken: {free}"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"Port {port} of {host} may not be listened on by this user: {free}"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is no address of this machine: give another by --host."
    reason = os.strerror(error.errno) if error.errno else str(error)
    return f"{host}:{port} cannot be listened on: {reason}. Give another --host or --port."


def run(
    app: FastAPI,
    opened: socket.socket,
    *,
    shutdown_seconds: float = 30.0,
    request_seconds: float = 60.0,
    header_seconds: float = 10.0,
    max_connections: int = 1000,
    max_connections_per_address: int = 256,
    log_level: str = "info",
) -> None:
    """Serve until a signal says to end.

    Args:
        app: What answers.
        opened: The socket that listens.
        shutdown_seconds: What open requests have to end in.
        request_seconds: What a request may take.
        header_seconds: How long a connection may be without a request.
        max_connections: Connections in all; fewer where the process may open few files.
        max_connections_per_address: Connections of one address.
        log_level: The least of the log's levels that is written.

    Raises:
        InputError: The process may open too few files.
        StoreError: The service could not start.
    """
    write_log(log_level)
    held = Connections(
        room_for(max_connections),
        max_connections_per_address,
        header_seconds,
        request_seconds + END_SECONDS,
    )
    # Uvicorn calls it as it does its own class.
    protocol: Any = partial(BoundedProtocol, held=held)
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        backlog=BACKLOG,
        log_config=None,
        log_level=log_level,
        access_log=log_level == "debug",
        lifespan="on",
        server_header=False,
        timeout_graceful_shutdown=math.ceil(shutdown_seconds),
    )
    host, port = opened.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    print(f"Serving on http://{shown}:{port} (docs at /docs)", file=sys.stderr, flush=True)
    server = _Server(config, held)
    with opened:
        server.run(sockets=[opened])
    if not server.started:
        raise StoreError("The service could not start; the lines above say why.")
