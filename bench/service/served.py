"""The service as users start it: a process of its own, on a free port of this machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from casewright.errors import StoreError

START_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Served:
    """A running service.

    Attributes:
        url: Its address.
        pid: Its process.
    """

    url: str
    pid: int

    def megabytes(self) -> float | None:
        """Return its resident memory; ``None`` where the system does not tell."""
        try:
            status = Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8")
        except OSError:
            return None
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        return int(found[1]) / 1024 if found else None

    def cpu_seconds(self) -> float:
        """Return how long it has computed; 0 where the system does not tell."""
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2]
        except OSError:
            return 0.0
        # The 14th and 15th field of the whole line.
        user, system = fields.split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@contextmanager
def served(domain: str) -> Iterator[Served]:
    """Serve a domain while the context lasts.

    Raises:
        StoreError: It does not start; says what it wrote.
    """
    command = [sys.executable, "-m", "casewright", "serve", "--without-tokens"]
    command += ["--host", "127.0.0.1", "--port", "0", "--domain", domain]
    # Settings of the service that the user has for others are not what is measured.
    own = {"CASEWRIGHT_LOG_LEVEL": "warning", "CASEWRIGHT_RETAIN": "off"}
    with tempfile.TemporaryFile("w+") as told:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stderr=told, env={**os.environ, **own}
        )
        try:
            yield Served(_address(process, told.fileno()), process.pid)
        finally:
            process.terminate()
            process.wait()


def _address(process: subprocess.Popen[bytes], told: int) -> str:
    deadline = time.monotonic() + START_SECONDS
    while True:
        written = os.pread(told, 100_000, 0).decode(errors="replace")
        if found := re.search(r"Serving on (http://\S+)", written):
            return found[1]
        if process.poll() is not None or time.monotonic() > deadline:
            raise StoreError(f"The service did not start. It wrote: {written[-800:]}")
        time.sleep(0.05)
