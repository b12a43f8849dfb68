"""Reads and splits files in a child process, which is killed if a file takes too long.

For each file, the parent sends a line of JSON and the file's bytes; the child answers in JSON.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import IO, Any

from casewright.errors import InputError, one_line
from casewright.stores.documents.file_walk import Kind
from casewright.stores.documents.splitter import Chunk

#: Maximum CPU seconds for a file: ``SECONDS``, plus ``SECONDS_PER_MEGABYTE`` for each megabyte.
SECONDS = 60.0
SECONDS_PER_MEGABYTE = 10.0

#: Idle workers by the id of the process that started them; no other process may use them.
_idle: dict[int, list[Worker]] = defaultdict(list)


@contextmanager
def worker() -> Iterator[Worker]:
    """Yield a worker for exclusive use. Its process is reused: a start takes half a second."""
    idle_workers = _idle[os.getpid()]
    reserved_worker = idle_workers.pop() if idle_workers else Worker()
    try:
        yield reserved_worker
    finally:
        idle_workers.append(reserved_worker)


@atexit.register
def _close_all() -> None:
    for idle_worker in _idle[os.getpid()]:
        idle_worker.close()


class Worker:
    """A child process that reads files; it starts with the first file."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def chunks(self, data: bytes, kind: Kind, seconds: float = SECONDS) -> tuple[list[Chunk], str]:
        """Return a file's chunks, and the reader's remark on a guessed encoding; may be empty.

        The limit of CPU time is ``seconds``, plus ``SECONDS_PER_MEGABYTE`` for each megabyte. Raise
        ``InputError``, without naming the file, if reading fails, is too slow or ends the process.
        """
        # With -P, no module of the working directory replaces one of Python or Casewright.
        command = [sys.executable, "-P", "-m", __name__]
        pipe, null = subprocess.PIPE, subprocess.DEVNULL
        self._process = process = self._process or subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=null
        )
        seconds += SECONDS_PER_MEGABYTE * len(data) / 1e6
        try:
            answer = _ask_child(process, data, kind, seconds)
        except BaseException:
            self.close()
            raise
        if answer is None:
            self.close()
            if process.returncode == -signal.SIGPROF:
                raise InputError(f"reading it takes more than {seconds:.0f} s of CPU time")
            raise InputError(f"reading it ended the process with code {process.returncode}")
        if "error" in answer:
            raise InputError(answer["error"])
        chunks = [{**fields, "headings": tuple(fields["headings"])} for fields in answer["chunks"]]
        return [Chunk(**fields) for fields in chunks], answer["note"]

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            # ``kill`` does not change the return code of a process that has ended.
            process.kill()
            process.communicate()


def _ask_child(
    process: subprocess.Popen[bytes], data: bytes, kind: Kind, seconds: float
) -> dict[str, Any] | None:
    """Return the child's answer; ``None`` if the child ended without an answer."""
    assert process.stdin is not None
    assert process.stdout is not None
    request = {"kind": asdict(kind), "size": len(data), "seconds": seconds}
    try:
        process.stdin.write(json.dumps(request).encode() + b"\n" + data)
        process.stdin.flush()
    except BrokenPipeError:
        return None
    line = process.stdout.readline()
    answer: dict[str, Any] | None = json.loads(line) if line.endswith(b"\n") else None
    return answer


def _chunk_answer(data: bytes, kind: Kind) -> dict[str, Any]:
    """Return the child's answer for a file: chunks and a note, or the reason for a failure."""
    from casewright.stores.documents.reader import read_document
    from casewright.stores.documents.splitter import split

    try:
        document = read_document(data, kind)
        return {"chunks": [asdict(chunk) for chunk in split(document)], "note": document.note}
    except InputError as error:
        return {"error": str(error)}
    except Exception as error:  # noqa: BLE001 - a library may raise anything
        return {"error": f"it cannot be read: {one_line(error)}"}


def _serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    while line := requests.readline():
        request = json.loads(line)
        # The system ends the process after this CPU time, even inside a C library.
        signal.setitimer(signal.ITIMER_PROF, request["seconds"])
        answer = _chunk_answer(requests.read(request["size"]), Kind(**request["kind"]))
        signal.setitimer(signal.ITIMER_PROF, 0)
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


if __name__ == "__main__":
    # The parent ends this process after an interrupt. If the parent is killed, ``_serve`` returns.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with os.fdopen(os.dup(1), "wb") as out:
        # What libraries print goes to stderr, since the parent reads stdout as answers.
        os.dup2(2, 1)
        _serve(sys.stdin.buffer, out)
