"""Many batches on their way into a collection."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.errors import StoreError

Ids = Sequence[str]
Vectors = NDArray[np.float32]
Payloads = Sequence[Mapping[str, Any]]
#: Writes n points, now or soon: ids, array (n, dimension), payloads.
Upload = Callable[[Ids, Vectors, Payloads], None]


class Uploads:
    """Batches that are written by several threads, while the next ones are encoded.

    No more than ``parallel`` of them are in memory. The first that cannot be written ends the
    whole; those on their way are waited for. An error of the caller's waits for them too, so that
    what was handed over is stored; an interrupt waits for requests that are under way, no longer.

    Args:
        write: Writes a batch, and may be given up between its tries by the event.
        parallel: How many threads.
        size: Points in a batch.
        done: Told how many more points are stored, in the caller's thread.
    """

    def __init__(
        self,
        write: Callable[[Ids, Vectors, Payloads, threading.Event], None],
        *,
        parallel: int,
        size: int,
        done: Callable[[int], None],
    ) -> None:
        self._write = write
        self._parallel = parallel
        self._size = size
        self._done = done
        self._given_up = threading.Event()
        self._pool = ThreadPoolExecutor(parallel, thread_name_prefix="casewright-upload")
        self._pending: dict[Future[None], Ids] = {}
        self._error: BaseException | None = None
        self._batches = self._points = 0

    def __enter__(self) -> Upload:
        return self._upload

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None and not isinstance(error, Exception):
            self._given_up.set()
            self._pool.shutdown(wait=True, cancel_futures=True)
            return
        try:
            self._settle(all_of_them=True)
        finally:
            self._given_up.set()
            self._pool.shutdown(wait=True, cancel_futures=True)

    def _upload(self, ids: Ids, vectors: Vectors, payloads: Payloads) -> None:
        for start in range(0, len(ids), self._size):
            part = slice(start, start + self._size)
            self._hand_over(ids[part], vectors[part], payloads[part])

    def _hand_over(self, ids: Ids, vectors: Vectors, payloads: Payloads) -> None:
        self._settle()
        # Of two cases with one id, the later is to stay.
        if any(not set(ids).isdisjoint(others) for others in self._pending.values()):
            self._settle(all_of_them=True)
        while len(self._pending) >= self._parallel:
            wait(self._pending, return_when=FIRST_COMPLETED)
            self._settle()
        future = self._pool.submit(self._write, ids, vectors, payloads, self._given_up)
        self._pending[future] = ids

    def _settle(self, *, all_of_them: bool = False) -> None:
        """Count what is stored by now, and raise the first error, after the others have ended."""
        if all_of_them:
            wait(self._pending)
        for future in [future for future in self._pending if future.done()]:
            ids = self._pending.pop(future)
            if (error := future.exception()) is None:
                self._batches += 1
                self._points += len(ids)
                self._done(len(ids))
            elif self._error is None:
                self._error = error
                self._given_up.set()
        if self._error is None:
            return
        if self._pending:
            self._settle(all_of_them=True)
        raise self._told(self._error) from self._error

    def _told(self, error: BaseException) -> BaseException:
        if not isinstance(error, StoreError):
            return error
        return type(error)(
            f"{error} {self._batches} batches with {self._points} cases were stored before that. "
            "Add all of them again: each is stored once."
        )
