"""A lock that several hold together, or one thread alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType


class SharedLock:
    """Held alone by ``with lock``, as often as that thread enters, or shared by ``with
    lock.shared()``; never both.

    Who waits to have it alone goes before those who would share it: uploads of a long ``add`` do
    not keep a ``retain`` waiting until the end. A thread that has it alone must not share it too.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._sharing = 0
        self._waiting = 0
        self._depth = 0
        self._owner: int | None = None

    def __enter__(self) -> None:
        me = threading.get_ident()
        with self._changed:
            if self._owner != me:
                self._waiting += 1
                try:
                    self._changed.wait_for(lambda: self._owner is None and not self._sharing)
                    self._owner = me
                finally:
                    self._waiting -= 1
                    self._changed.notify_all()
            self._depth += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._changed:
            self._depth -= 1
            if not self._depth:
                self._owner = None
                self._changed.notify_all()

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Hold it together with others."""
        with self._changed:
            self._changed.wait_for(lambda: self._owner is None and not self._waiting)
            self._sharing += 1
        try:
            yield
        finally:
            with self._changed:
                self._sharing -= 1
                self._changed.notify_all()
