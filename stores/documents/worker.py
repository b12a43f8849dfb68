"""Files are read and split by a process of their own, which is ended where a file takes too long.

``python -m casewright.stores.documents.worker`` is that process: of each file it is given a line of
JSON and the bytes, and it answers with a line of JSON.
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

from casewright.errors import InputError, told
from casewright.stores.documents.kinds import Kind
from casewright.stores.documents.splitter import Chunk

#: Seconds of computing that a file may take, and more for each megabyte of it.
SECONDS, SECONDS_A_MEGABYTE = 60.0, 10.0


#: Workers of a process that read nothing now, by its number: a fork has its own.
_idle: dict[int, list[Worker]] = defaultdict(list)


@contextmanager
def worker() -> Iterator[Worker]:
    """Give a worker that nobody else uses; it stays, since starting one takes half a second."""
    idle = _idle[os.getpid()]
    taken = idle.pop() if idle else Worker()
    try:
        yield taken
    finally:
        idle.append(taken)


@atexit.register
def _close_all() -> None:
    for one in _idle[os.getpid()]:
        one.close()


class Worker:
    """A process that reads files, started by the first one."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def chunks(self, data: bytes, source: str, kind: Kind, seconds: float = SECONDS) -> list[Chunk]:
        """Return a file's chunks; see ``read_document`` and ``split``.

        Args:
            data: All of its bytes.
            source: Its name.
            kind: Its kind.
            seconds: Of computing that it may take, beside what its size allows it.

        Raises:
            InputError: It cannot be read, takes too long, or ends the process that reads it; the
                message is the reason alone.
        """
        process = self._process or _started()
        self._process = process
        seconds += SECONDS_A_MEGABYTE * len(data) / 1e6
        try:
            answer = _answer(process, data, source, kind, seconds)
        except BaseException:
            self.close()
            raise
        if answer is None:
            self.close()
            if process.returncode == -signal.SIGPROF:
                raise InputError(f"reading it takes more than {seconds:.0f} s of computing")
            raise InputError(f"reading it ended the process with code {process.returncode}")
        if "error" in answer:
            raise InputError(answer["error"])
        return [Chunk(**{**one, "heading": tuple(one["heading"])}) for one in answer["chunks"]]

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            # One that has ended keeps what it ended by.
            process.kill()
            process.communicate()


def _started() -> subprocess.Popen[bytes]:
    # -P: no module of the folder that the command runs in takes the place of one of ours.
    command = [sys.executable, "-P", "-m", __name__]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )


def _answer(
    process: subprocess.Popen[bytes], data: bytes, source: str, kind: Kind, seconds: float
) -> dict[str, Any] | None:
    """Return what the process answers; ``None`` where it has ended."""
    assert process.stdin is not None
    assert process.stdout is not None
    asked = {"source": source, "kind": asdict(kind), "size": len(data), "seconds": seconds}
    try:
        process.stdin.write(json.dumps(asked).encode() + b"\n" + data)
        process.stdin.flush()
    except BrokenPipeError:
        return None
    line = process.stdout.readline()
    answer: dict[str, Any] | None = json.loads(line) if line.endswith(b"\n") else None
    return answer


def _read(data: bytes, source: str, kind: Kind) -> dict[str, Any]:
    from casewright.stores.documents.reader import read_document
    from casewright.stores.documents.splitter import split

    try:
        return {"chunks": [asdict(one) for one in split(read_document(data, source, kind))]}
    except InputError as error:
        return {"error": str(error)}
    # What others wrote to read documents may raise anything.
    except Exception as error:  # noqa: BLE001
        return {"error": f"it cannot be read: {told(error)}"}


def _serve(asked: IO[bytes], answers: IO[bytes]) -> None:
    while line := asked.readline():
        file = json.loads(line)
        # The system ends the process when it has computed for so long, in whatever library.
        signal.setitimer(signal.ITIMER_PROF, file["seconds"])
        made = _read(asked.read(file["size"]), file["source"], Kind(**file["kind"]))
        signal.setitimer(signal.ITIMER_PROF, 0)
        answers.write(json.dumps(made).encode() + b"\n")
        answers.flush()


if __name__ == "__main__":
    # An interrupt is its parent's to take; a parent that has ended closes the pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with os.fdopen(os.dup(1), "wb") as out:
        # What a reader prints would stand between the answers.
        os.dup2(2, 1)
        _serve(sys.stdin.buffer, out)
