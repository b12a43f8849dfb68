"""The service opens its socket, or reports the host or port that it cannot use."""

from __future__ import annotations

import socket

import pytest

from casewright.errors import InputError
from casewright.serve.service.server import listening_socket


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_accepted_connection_has_tcp_nodelay(host: str) -> None:
    if ":" in host and not socket.has_dualstack_ipv6():
        pytest.skip("There is no IPv6 here.")
    with (
        listening_socket(host, 0) as listener,
        socket.create_connection(listener.getsockname()[:2], timeout=10),
    ):
        connection, _ = listener.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_error_of_a_port_in_use_names_the_option_port() -> None:
    with listening_socket("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(InputError) as raised:
            listening_socket("127.0.0.1", port)
    assert str(raised.value) == (
        f"Port {port} of 127.0.0.1 is taken: give another by --port; --port 0 takes a free one."
    )


@pytest.mark.parametrize(
    ("host", "port", "message"),
    [
        ("no.such.host.invalid", 0, "The host no.such.host.invalid is unknown"),
        ("192.0.2.1", 0, "192.0.2.1 is not an address of this machine"),
        ("127.0.0.1", 70_000, "70000 is not a port"),
    ],
)
def test_error_of_an_unusable_host_or_port_names_it_without_errno(
    host: str, port: int, message: str
) -> None:
    with pytest.raises(InputError, match=message) as raised:
        listening_socket(host, port)
    assert "Errno" not in str(raised.value)
