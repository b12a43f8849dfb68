"""What bounds connections: how many there are, and how long one may be held without a request."""

from __future__ import annotations

import ipaddress
import logging
import os
import resource
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from casewright.errors import InputError

if TYPE_CHECKING:
    import asyncio

#: Connections that the system takes before the service does; asyncio takes as many at a time.
BACKLOG = 64
#: Files that are left to what answers, beside those of connections that are being taken.
FILES = 32
#: Fewer connections than these are no service.
FEWEST = 8
log = logging.getLogger("casewright.service")
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
    b"Content-Length: 0\r\n\r\n"
)


class Connections:
    """The open connections, of which there are so many in all and of one address.

    Beyond that, the one that has been quiet for longest is closed for the new one: of the same
    address, or in all of the address that has most. Quiet is what has no request at work: its
    headers do not come, or its response is not read. Where none is quiet, the new one gets 503.

    Args:
        most: Connections in all.
        most_of_one: Connections of one address; of IPv6, of one network of 64 bits.
        quiet_seconds: How long one may be without a request at work.
        busy_seconds: How long a request may be at work, whatever becomes of it.
    """

    def __init__(
        self, most: int, most_of_one: int, quiet_seconds: float, busy_seconds: float
    ) -> None:
        self._most = most
        self._most_of_one = most_of_one
        self._quiet_seconds = quiet_seconds
        self._busy_seconds = busy_seconds
        # By address, what changed longest ago first.
        self._of: dict[str, OrderedDict[BoundedProtocol, float]] = {}

    def admit(self, new: BoundedProtocol) -> bool:
        """Note a new connection; says whether there was room, or could be made."""
        own = self._of.get(new.address, OrderedDict())
        full = sum(map(len, self._of.values())) >= self._most
        if full or len(own) >= self._most_of_one:
            crowded = max(self._of.values(), key=len) if full else own
            quiet = next((one for one in crowded if not one.busy), None)
            log.warning(
                "There is no room for another connection: %s.",
                "all are at work, and it is refused" if quiet is None else "a quiet one is closed",
            )
            if quiet is None:
                return False
            self.leave(quiet)
            quiet.transport.abort()
        self._of.setdefault(new.address, OrderedDict())[new] = new.loop.time()
        return True

    def leave(self, gone: BoundedProtocol) -> None:
        """Note that a connection is closed."""
        own = self._of.get(gone.address, OrderedDict())
        own.pop(gone, None)
        if not own:
            self._of.pop(gone.address, None)

    def changed(self, one: BoundedProtocol) -> None:
        """Note that a connection's request came, or was answered: its time starts anew."""
        own = self._of.get(one.address, OrderedDict())
        if one in own:
            own[one] = one.loop.time()
            own.move_to_end(one)

    def end_overdue(self) -> None:
        """Close what was quiet, or at work, for longer than it may."""
        for own in list(self._of.values()):
            for one, since in list(own.items()):
                one.look()
                allowed = self._busy_seconds if one.busy else self._quiet_seconds
                if own.get(one) == since and one.loop.time() - since > allowed:
                    one.transport.abort()


class BoundedProtocol(H11Protocol):
    """Uvicorn's HTTP/1.1, on a connection that ``Connections`` bounds.

    Uvicorn's own timer ends at the first byte: half a request would be held for ever.
    """

    def __init__(self, *given: Any, held: Connections, **named: Any) -> None:
        super().__init__(*given, **named)
        self._held = held
        self._state: tuple[Any, bool] = (None, False)
        self.address = ""

    @property
    def busy(self) -> bool:
        """Whether a request is at work."""
        begun = self.cycle is not None and not self.cycle.response_complete
        return begun and not self.transport.is_closing()

    def look(self) -> None:
        """Note what changed."""
        state = (self.cycle, self.busy)
        if state != self._state:
            self._state = state
            self._held.changed(self)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the connection, or refuse it."""
        super().connection_made(transport)
        self.address = network_of(self.client[0] if self.client else "")
        if not self._held.admit(self):
            transport.write(_FULL)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let the connection go."""
        self._held.leave(self)
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Read what came."""
        super().handle_events()
        self.look()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self.look()


def network_of(host: str) -> str:
    """Return whose connections are counted together: an IPv4 address, or a network of IPv6."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)


def room_for(wanted: int) -> int:
    """Return how many connections may be open: as many as wanted, or fewer where files are few.

    A quarter of the files that the process may open, or more, is left to what answers.

    Raises:
        InputError: There is room for next to none.
    """
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most == resource.RLIM_INFINITY:
        return wanted
    left = most - max(most // 4, BACKLOG + FILES) - len(os.listdir("/dev/fd"))
    if left < FEWEST:
        raise InputError(
            f"This process may open {most} files, which leaves none for connections. Raise the "
            "limit: ulimit -n 1024."
        )
    return min(wanted, left)
