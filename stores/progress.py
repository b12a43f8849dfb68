"""Progress of long work, on stderr, so that stdout holds results only."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

#: Work of fewer items than this is over before a bar could be read.
WORTH_A_BAR = 500
#: Where stderr is no terminal: lines that are written at least and at most so often, in seconds.
SELDOM, OFTEN = 10.0, 1.0

Advance = Callable[[int], None]


@contextmanager
def progress_bar(
    description: str, total: int, *, show: bool | Advance | None = None
) -> Iterator[Advance]:
    """Show a bar over ``total`` items and yield a function that advances it by n.

    Args:
        description: What is being done, in a few words.
        total: Number of items.
        show: ``True`` or ``False`` to force it; ``None`` shows it on a terminal where the work is
            long enough, and elsewhere writes a line every ten seconds. Or a function that tells of
            a larger whole, which is advanced instead.
    """
    if callable(show):
        yield show
        return
    if show is None and not sys.stderr.isatty():
        with told_progress(description, total, often=SELDOM) as advance:
            yield advance
        return
    if show is None:
        show = total >= WORTH_A_BAR
    if not show:
        yield lambda count: None
        return
    with _shown.bar(description, total) as advance:
        yield advance


@contextmanager
def told_progress(
    description: str,
    total: int | None = None,
    unit: str = "items",
    *,
    seconds: float = SELDOM,
    often: float = OFTEN,
) -> Iterator[Advance]:
    """Tell of work that somebody waits for: a bar on a terminal, elsewhere a line now and then.

    A line is written with every tenth that is done, though not twice in ``often`` seconds, and
    whenever some seconds have passed without one. Work that is done by then writes none.

    Args:
        description: What is being done, in a few words.
        total: Number of items; ``None`` where nobody can say how far the work is.
        unit: What the items are.
        seconds: After how long a line is written, whatever was done.
        often: Seconds between two lines at least.
    """
    if sys.stderr.isatty():
        with _shown.bar(description, total) as advance:
            yield advance
        return
    lines = _Lines(description, total, unit, seconds, often)
    thread = threading.Thread(target=lines.write_now_and_then, name="casewright-progress")
    thread.daemon = True
    thread.start()
    try:
        yield lines.advance
    finally:
        lines.ended.set()
        thread.join()


def note(message: str) -> None:
    """Print one line about long work to stderr."""
    _shown.note(message)


class _Lines:
    """Progress as lines of text."""

    def __init__(
        self, description: str, total: int | None, unit: str, seconds: float, often: float
    ) -> None:
        self.ended = threading.Event()
        self._description, self._total, self._unit = description, total, unit
        self._seconds, self._often = seconds, often
        self._lock = threading.Lock()
        self._began = self._last = time.monotonic()
        self._done = self._tenths = 0

    def advance(self, count: int) -> None:
        with self._lock:
            self._done += count
            tenths = 10 * self._done // self._total if self._total else 0
            if tenths > self._tenths and time.monotonic() - self._last >= self._often:
                self._tenths = tenths
                self._write()

    def write_now_and_then(self) -> None:
        while not self.ended.wait(max(0.0, self._last + self._seconds - time.monotonic())):
            with self._lock:
                if time.monotonic() - self._last >= self._seconds:
                    self._write()

    def _write(self) -> None:
        self._last = time.monotonic()
        passed = f"{self._last - self._began:.0f} s"
        if self._total is None:
            told = f"{passed} so far"
        else:
            share = 100 * self._done // max(1, self._total)
            told = f"{self._done} of {self._total} {self._unit} ({share} %), {passed}"
        print(f"{self._description}: {told}", file=sys.stderr, flush=True)


class _Shown:
    """The bars that a terminal shows now, one below the other: threads may work side by side."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._progress: Progress | None = None
        self._bars = 0

    @contextmanager
    def bar(self, description: str, total: int | None) -> Iterator[Advance]:
        with self._lock:
            if self._progress is None:
                self._progress = _rich_progress()
                self._progress.start()
            self._bars += 1
            progress = self._progress
        task = progress.add_task(description, total=total)
        try:
            yield lambda count: progress.advance(task, count)
        finally:
            if total is None:
                progress.update(task, total=1, completed=1)
            with self._lock:
                self._bars -= 1
                if not self._bars:
                    self._progress = None
                    progress.stop()

    def note(self, message: str) -> None:
        with self._lock:
            if self._progress is None:
                print(message, file=sys.stderr, flush=True)
            else:
                # Printed past it, a line would end up in the middle of a bar.
                self._progress.console.print(message, markup=False, highlight=False, soft_wrap=True)


def _rich_progress() -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        Task,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Count(MofNCompleteColumn):
        """How many items are done, where they can be counted."""

        def render(self, task: Task) -> Text:
            return super().render(task) if task.total not in (None, 1) else Text("")

    class Time(TimeRemainingColumn):
        """How long it will take, or has taken where nobody can say."""

        def render(self, task: Task) -> Text:
            return TimeElapsedColumn().render(task) if task.total is None else super().render(task)

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        Count(),
        Time(),
        # Redirected, what a caller prints meanwhile would end up on stderr too.
        console=Console(stderr=True),
        redirect_stdout=False,
        redirect_stderr=False,
    )


_shown = _Shown()
