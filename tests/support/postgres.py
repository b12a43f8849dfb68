"""A PostgreSQL server for tests, if it is installed: as Debian's package, or on the PATH."""

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

#: The folders of Debian's packages.
FOLDERS = "/usr/lib/postgresql/*/bin"


def program(name: str) -> str:
    """Return the path of a program of PostgreSQL; skip the test if it is not installed."""
    folders = [*sorted(glob.glob(FOLDERS))[::-1], "/usr/bin"]
    path = shutil.which(name, path=os.pathsep.join(folders))
    if path is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    return path


@contextmanager
def database() -> Iterator[str]:
    """Yield the URL of an empty database on a server that runs until the context ends."""
    pytest.importorskip("psycopg_pool")
    initdb, postgres = program("initdb"), program("postgres")
    # PostgreSQL refuses to run as root; Debian's package creates the user.
    user: dict[str, Any] = {"user": "postgres", "group": "postgres"} if os.getuid() == 0 else {}
    folder = Path(tempfile.mkdtemp(prefix="casewright-postgres-"))
    if user:
        shutil.chown(folder, **user)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    data = str(folder / "data")
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **user}
    create = [initdb, "-D", data, "-U", "tests", "-A", "trust", "--no-sync", "-E", "UTF8"]
    subprocess.run(create, check=True, cwd=folder, **quiet)
    settings = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off"}
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    command = [postgres, "-D", data, "-p", str(port), *options]
    server = subprocess.Popen(command, cwd=folder, **quiet)
    url = f"postgresql://tests@127.0.0.1:{port}/postgres"
    try:
        _wait_until_ready(url)
        yield url
    finally:
        # Stop at once, without waiting for connected clients.
        server.send_signal(signal.SIGQUIT)
        server.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def _wait_until_ready(url: str) -> None:
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
    """Create another empty database on a server; return its URL."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as opened:
        opened.execute(f"CREATE DATABASE {name}")
    return f"{url.rpartition('/')[0]}/{name}"
