"""An OpenAI-compatible server on this machine: `transformers serve`, in a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.request import ProxyHandler, build_opener

from casewright.errors import CasewrightError, DependencyError
from casewright.stores.progress import note

#: What `transformers serve` needs beside transformers.
NEEDED = ("fastapi", "openai", "uvicorn")
HOST = "127.0.0.1"
#: What is run: see there.
CHILD = "casewright.bench.chat.child"
#: How long it may take to end once it is told to, in seconds; how often it is asked if it is up.
ENDING, ASKED_EVERY = 5.0, 0.1
#: Lines of its log that are shown when it fails.
SHOWN = 30


@contextmanager
def local_server(folder: Path, *, seconds: float = 120.0) -> Iterator[str]:
    """Serve the model of a folder, and yield the URL of its API (``http://…/v1``).

    The server ends with the ``with`` block, and with this process, however that ends. When it
    fails, the end of its log is printed to stderr.

    Args:
        folder: The model's; requests name the model by the folder's name.
        seconds: How long it may take to start.

    Raises:
        DependencyError: A package that it needs is not installed.
        CasewrightError: It does not start in time, or ends before it is told to.
    """
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise DependencyError(
            f"A local server needs {', '.join(missing)}. Run: pip install 'casewright[bench]'"
        )
    with TemporaryDirectory(prefix="casewright-server-") as own:
        log = Path(own) / "log"
        port = _free_port()
        process = _start(folder, port, Path(own), log)
        try:
            _wait(process, port, seconds)
            yield f"http://{HOST}:{port}/v1"
            if (code := process.poll()) is not None:
                raise CasewrightError(f"The local server ended by itself, with code {code}.")
        except CasewrightError:
            note("The end of the local server's log:\n" + _end_of(log))
            raise
        finally:
            _end(process)


def _start(folder: Path, port: int, own: Path, log: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", CHILD, "serve", folder.name]
    command += ["--host", HOST, "--port", str(port), "--device", "cpu"]
    # It looks for nothing outside its folder, and writes its caches into one that is removed.
    settings = {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_UPDATE_CHECK": "1", "HF_HOME": str(own)}
    with log.open("wb") as output:
        return subprocess.Popen(
            command,
            cwd=folder.parent,
            env={**os.environ, **settings},
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
        )


def _wait(process: subprocess.Popen[bytes], port: int, seconds: float) -> None:
    """Return when the server is up.

    Raises:
        CasewrightError: It ended, or is not up in time.
    """
    # A proxy that the environment names does not lead to this machine.
    opener = build_opener(ProxyHandler({}))
    ends = time.perf_counter() + seconds
    while time.perf_counter() < ends:
        if (code := process.poll()) is not None:
            raise CasewrightError(f"The local server ended with code {code} before it was up.")
        with suppress(OSError, HTTPException):
            opener.open(f"http://{HOST}:{port}/health", timeout=1).close()
            return
        time.sleep(ASKED_EVERY)
    raise CasewrightError(f"The local server was not up within {seconds:g} s.")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(ENDING)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdin is not None:
        process.stdin.close()


def _end_of(log: Path) -> str:
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-SHOWN:])


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        port: int = taken.getsockname()[1]
    return port
