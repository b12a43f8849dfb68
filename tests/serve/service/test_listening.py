"""The service's socket."""

from __future__ import annotations

import socket

import pytest

from casewright.serve.service.server import listening


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_an_accepted_connection_sends_a_body_without_waiting_for_its_head(host: str) -> None:
    if ":" in host and not socket.has_dualstack_ipv6():
        pytest.skip("There is no IPv6 here.")
    with (
        listening(host, 0) as opened,
        socket.create_connection(opened.getsockname()[:2], timeout=10),
    ):
        connection, _ = opened.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
