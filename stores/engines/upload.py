"""A context that uploads batches in several threads, and a lock that threads can share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.errors import StoreError

Ids = Sequence[str]
Vectors = NDArray[np.float32]
#: Cases in their JSON form.
Payloads = Sequence[Mapping[str, Any]]
#: A function of ids, vectors (n, dimension) and payloads: it writes n points, now or later.
Upload = Callable[[Ids, Vectors, Payloads], None]
UploadContext = AbstractContextManager[Upload]


class Uploads:
    """A context in which ``parallel`` threads write batches of ``size`` points.

    At most ``parallel`` batches are in memory. ``write`` gets an event that is set to end retries.
    ``on_stored`` is called in the caller's thread with the number of points stored since the last
    call. If a batch fails or the caller is interrupted, the context waits only for running
    requests. If the caller raises another error, the context waits until all batches are stored.
    """

    def __init__(
        self,
        write: Callable[[Ids, Vectors, Payloads, threading.Event], None],
        *,
        parallel: int,
        size: int,
        on_stored: Callable[[int], None],
    ) -> None:
        self._write, self._parallel, self._size, self._on_stored = write, parallel, size, on_stored
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(parallel, thread_name_prefix="casewright-upload")
        self._pending: dict[Future[None], Ids] = {}
        self._error: BaseException | None = None
        self._stored_batches = self._stored_points = 0

    def __enter__(self) -> Upload:
        return self._upload

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is None or isinstance(error, Exception):
                self._collect_finished(wait_for_all=True)
        finally:
            self._stop.set()
            self._pool.shutdown(wait=True, cancel_futures=True)

    def _upload(self, ids: Ids, vectors: Vectors, payloads: Payloads) -> None:
        for start in range(0, len(ids), self._size):
            rows = slice(start, start + self._size)
            batch = ids[rows], vectors[rows], payloads[rows]
            self._collect_finished()
            # The later of two cases with the same id must be written last.
            if any(not set(batch[0]).isdisjoint(pending) for pending in self._pending.values()):
                self._collect_finished(wait_for_all=True)
            while len(self._pending) >= self._parallel:
                wait(self._pending, return_when=FIRST_COMPLETED)
                self._collect_finished()
            self._pending[self._pool.submit(self._write, *batch, self._stop)] = batch[0]

    def _collect_finished(self, *, wait_for_all: bool = False) -> None:
        """Report stored batches; after an error, wait for all batches, then raise the error."""
        if wait_for_all:
            wait(self._pending)
        for future in [future for future in self._pending if future.done()]:
            ids = self._pending.pop(future)
            if (error := future.exception()) is None:
                self._stored_batches += 1
                self._stored_points += len(ids)
                self._on_stored(len(ids))
            elif self._error is None:
                self._error = error
                self._stop.set()
        if self._error is None:
            return
        if self._pending:
            self._collect_finished(wait_for_all=True)
        error = self._error
        if isinstance(error, StoreError):
            error = type(error)(
                f"{error} {self._stored_batches} batches with {self._stored_points} cases were "
                "stored before that. Add all of them again: each is stored once."
            )
        raise error from self._error


class SharedLock:
    """A lock that one thread owns (``with lock``, reentrant) or several share (``lock.shared()``).

    A thread that waits to own the lock precedes threads that wait to share it, so that a call of
    ``CaseStore.retain`` does not wait for a long ``add``. The owner must not call ``shared``.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._sharers = self._waiting_owners = self._depth = 0
        self._owner: int | None = None

    def __enter__(self) -> None:
        thread_id = threading.get_ident()
        with self._changed:
            if self._owner != thread_id:
                self._waiting_owners += 1
                try:
                    self._changed.wait_for(lambda: self._owner is None and not self._sharers)
                    self._owner = thread_id
                finally:
                    self._waiting_owners -= 1
                    self._changed.notify_all()
            self._depth += 1

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        with self._changed:
            self._depth -= 1
            if not self._depth:
                self._owner = None
                self._changed.notify_all()

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Hold the lock together with other threads."""
        with self._changed:
            self._changed.wait_for(lambda: self._owner is None and not self._waiting_owners)
            self._sharers += 1
        try:
            yield
        finally:
            with self._changed:
                self._sharers -= 1
                self._changed.notify_all()
