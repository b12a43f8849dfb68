"""Limits the number of connections, and how long a connection may be quiet or busy."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import resource
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from casewright.errors import InputError

#: Maximum number of connections that the system queues until the service accepts them.
BACKLOG = 64
#: Maximum number of connections that asyncio accepts at once. Up to three times this number may
#: be open beyond ``Connections.limit`` until ``admit`` closes or refuses them.
MAX_ACCEPTED = 16
#: Minimum number of files that the service can open besides its connections.
RESERVED_FILES = 32
#: Minimum number of connections of a service.
MIN_CONNECTIONS = 8
log = logging.getLogger("casewright.service")
_FULL_RESPONSE = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
    b"Content-Length: 0\r\n\r\n"
)


@dataclass(eq=False)
class Connections:
    """The open connections, bounded in total and by address (IPv6: by network of 64 bits).

    A connection is busy while a request is processed, and otherwise quiet. A new connection beyond
    a limit replaces the connection that has been quiet for longest: at the limit of an address, one
    of this address; at the total limit, one of the address with the most connections. If none is
    quiet, the new connection gets 503. ``end_overdue`` closes connections that exceed their time.
    """

    limit: int
    address_limit: int
    quiet_seconds: float
    busy_seconds: float
    # By address: connections with the time at which they became busy or quiet, the earliest first.
    _open: dict[str, OrderedDict[BoundedProtocol, float]] = field(default_factory=dict)

    def admit(self, connection: BoundedProtocol) -> bool:
        """Add a new connection; return ``False`` if it is refused."""
        peers = self._open.get(connection.address, OrderedDict())
        is_full = sum(map(len, self._open.values())) >= self.limit
        if is_full or len(peers) >= self.address_limit:
            candidates = max(self._open.values(), key=len) if is_full else peers
            quiet = next((candidate for candidate in candidates if not candidate.is_busy), None)
            log.warning(
                "There is no room for another connection: %s.",
                "it is refused" if quiet is None else "a quiet connection is closed",
            )
            if quiet is None:
                return False
            self.remove(quiet)
            quiet.transport.abort()
        opened_at = connection.loop.time()
        self._open.setdefault(connection.address, OrderedDict())[connection] = opened_at
        return True

    def remove(self, connection: BoundedProtocol) -> None:
        """Remove a closed connection."""
        peers = self._open.get(connection.address, OrderedDict())
        peers.pop(connection, None)
        if not peers:
            self._open.pop(connection.address, None)

    def restart_timer(self, connection: BoundedProtocol) -> None:
        """Restart the timer of a connection that became busy or quiet."""
        peers = self._open.get(connection.address, OrderedDict())
        if connection in peers:
            peers[connection] = connection.loop.time()
            peers.move_to_end(connection)

    def end_overdue(self) -> None:
        """Close connections that were quiet or busy for too long."""
        for peers in list(self._open.values()):
            for connection, changed_at in list(peers.items()):
                connection.report_change()
                max_seconds = self.busy_seconds if connection.is_busy else self.quiet_seconds
                is_overdue = connection.loop.time() - changed_at > max_seconds
                # The report may have restarted the timer.
                if is_overdue and peers.get(connection) == changed_at:
                    connection.transport.abort()


class BoundedProtocol(H11Protocol):
    """Uvicorn's HTTP/1.1 on a connection that ``Connections`` bounds.

    Uvicorn's own timer ends at the first byte, so that an incomplete request would never time out.
    """

    def __init__(self, *args: Any, connections: Connections, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._connections = connections
        self._last_state: tuple[Any, bool] = (None, False)
        self.address = ""

    @property
    def is_busy(self) -> bool:
        """True while a request is processed."""
        is_processing = self.cycle is not None and not self.cycle.response_complete
        return is_processing and not self.transport.is_closing()

    def report_change(self) -> None:
        """Restart the timer if a request has begun or ended since the last report."""
        state = (self.cycle, self.is_busy)
        if state != self._last_state:
            self._last_state = state
            self._connections.restart_timer(self)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept the connection, or refuse it."""
        super().connection_made(transport)
        self.address = network_of(self.client[0] if self.client else "")
        if not self._connections.admit(self):
            transport.write(_FULL_RESPONSE)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection."""
        self._connections.remove(self)
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Process received data."""
        super().handle_events()
        self.report_change()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self.report_change()


def network_of(host: str) -> str:
    """Return the key by which connections are counted: an IPv4 address or an IPv6 network."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)


def connection_limit(requested: int) -> int:
    """Return the maximum number of connections: ``requested``, or less if files are scarce.

    A connection is an open file, and the system limits a process's open files. At least a quarter
    of this limit is kept for other work. Raise ``InputError`` if too few connections remain.
    """
    file_limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if file_limit == resource.RLIM_INFINITY:
        return requested
    try:
        open_files = len(os.listdir("/dev/fd"))
    except OSError:
        # The folder cannot be opened if the limit is reached.
        open_files = file_limit
    reserved = max(file_limit // 4, 3 * MAX_ACCEPTED + RESERVED_FILES)
    available = file_limit - reserved - open_files
    if available < MIN_CONNECTIONS:
        raise InputError(
            f"This process may open {file_limit} files, too few for connections. Raise the "
            "limit: ulimit -n 1024."
        )
    return min(requested, available)
