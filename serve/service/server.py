"""Running the service: its socket, its signals, its end."""

from __future__ import annotations

import errno
import logging
import math
import os
import socket
import sys
from types import FrameType

import uvicorn
from fastapi import FastAPI

from casewright.errors import InputError, StoreError

BACKLOG = 2048


class _Server(uvicorn.Server):
    """Ends when told to: open requests first, and by an exit code that says so.

    Uvicorn raises the signal once more at its end, so that the process would end by it. The method
    is not the one that sse-starlette, which LangServe imports, replaces: that one ends LangServe's
    streams as soon as a signal comes.
    """

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop accepting; a second signal ends what is still open."""
        self.force_exit = self.should_exit
        self.should_exit = True


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens.

    Raises:
        InputError: The address cannot be listened on.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        opened = socket.create_server((host, port), family=family, backlog=BACKLOG)
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
    log_level: str = "info",
) -> None:
    """Serve until a signal says to end; open requests have some seconds to end in.

    Raises:
        StoreError: The service could not start.
    """
    logging.basicConfig(
        level=log_level.upper(), stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s"
    )
    for quiet in ("httpx", "httpcore"):
        logging.getLogger(quiet).setLevel(logging.WARNING)
    config = uvicorn.Config(
        app,
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
    server = _Server(config)
    with opened:
        server.run(sockets=[opened])
    if not server.started:
        raise StoreError("The service could not start; the lines above say why.")
