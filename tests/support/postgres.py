"""A PostgreSQL server of the tests' own, where one is installed: Debian's, or one on the path."""

from __future__ import annotations

import glob
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

#: Without these, PostgreSQL's tests are skipped.
PLACES = "/usr/lib/postgresql/*/bin"


def program(name: str) -> str:
    """Return where a program of PostgreSQL's is; the test is skipped where it is nowhere."""
    found = shutil.which(name, path=os.pathsep.join([*sorted(glob.glob(PLACES))[::-1], "/usr/bin"]))
    if found is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    return found


@contextmanager
def database() -> Iterator[str]:
    """Run a server while the context lasts; yields the URL of an empty database."""
    pytest.importorskip("psycopg_pool")
    initdb, postgres = program("initdb"), program("postgres")
    # It refuses to run as root; Debian's package makes a user for it.
    whose: dict[str, Any] = {"user": "postgres", "group": "postgres"} if os.getuid() == 0 else {}
    folder = Path(tempfile.mkdtemp(prefix="casewright-postgres-"))
    if whose:
        shutil.chown(folder, **whose)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    data = str(folder / "data")
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **whose}
    made = [initdb, "-D", data, "-U", "tests", "-A", "trust", "--no-sync", "-E", "UTF8"]
    subprocess.run(made, check=True, cwd=folder, **quiet)
    settings = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off"}
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    command = [postgres, "-D", data, "-p", str(port), *options]
    server = subprocess.Popen(command, cwd=folder, **quiet)
    url = f"postgresql://tests@127.0.0.1:{port}/postgres"
    try:
        _answers(url)
        yield url
    finally:
        # At once, without waiting for who is connected.
        server.send_signal(signal.SIGQUIT)
        server.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def _answers(url: str) -> None:
    import psycopg

    deadline = time.monotonic() + 60
    while True:
        try:
            psycopg.connect(url, connect_timeout=2).close()
            return
        except psycopg.OperationalError:
            assert time.monotonic() < deadline, "PostgreSQL did not start"
            time.sleep(0.1)


def own_database(url: str, name: str) -> str:
    """Make one more empty database on a server, and return its URL."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as opened:
        opened.execute(f"CREATE DATABASE {name}")
    return f"{url.rpartition('/')[0]}/{name}"
