"""Shows the progress of long work on stderr, so that stdout has only results."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

#: Number of items below which no bar is shown, since the work ends too soon.
MIN_ITEMS = 500
#: Maximum and minimum seconds between two lines if stderr is not a terminal.
MAX_PAUSE, MIN_PAUSE = 10.0, 1.0

#: A function that is called with the number of further items that are done.
Advance = Callable[[int], None]


@contextmanager
def progress_bar(
    description: str,
    total: int,
    *,
    unit: str = "items",
    show: bool | Advance | None = None,
    suffix: Callable[[], str] = str,
) -> Iterator[Advance]:
    """Show a bar over ``total`` items and yield a function that advances it by n.

    ``show`` forces or suppresses the bar. ``None`` shows it on a terminal for long work; if stderr
    is not a terminal, a line is written every ten seconds, and ``suffix`` returns its end. If
    ``show`` is a function, nothing is shown and that function is yielded.
    """
    if callable(show):
        yield show
    elif show is None and not sys.stderr.isatty():
        with show_progress(description, total, unit, min_pause=MAX_PAUSE, suffix=suffix) as advance:
            yield advance
    elif show or (show is None and total >= MIN_ITEMS):
        with _bars.bar(description, total) as advance:
            yield advance
    else:
        yield lambda count: None


@contextmanager
def show_progress(
    description: str,
    total: int | None = None,
    unit: str = "items",
    *,
    max_pause: float = MAX_PAUSE,
    min_pause: float = MIN_PAUSE,
    suffix: Callable[[], str] = str,
) -> Iterator[Advance]:
    """Show the progress of work that a user waits for: a bar on a terminal, lines elsewhere.

    A line has an estimate of the remaining time. A line is written when a further tenth of the
    items is done, but not within ``min_pause`` seconds of the last line; and whenever no line was
    written for ``max_pause`` seconds. ``total`` is ``None`` if the number of items is unknown.
    ``unit`` is a word for the items; ``suffix`` returns the end of each line.
    """
    if sys.stderr.isatty():
        with _bars.bar(description, total) as advance:
            yield advance
        return
    lock, end_event = threading.Lock(), threading.Event()
    started = last_time = time.monotonic()
    done_count = written_tenths = 0

    def write() -> None:
        nonlocal last_time
        last_time = time.monotonic()
        text = f"{last_time - started:.0f} s"
        if total is None:
            text += " so far"
        else:
            text = f"{done_count} of {total} {unit} ({100 * done_count // max(1, total)} %), {text}"
            if 0 < done_count < total:
                text += f", {(last_time - started) * (total - done_count) / done_count:.0f} s left"
        print(f"{description}: {text}{suffix()}", file=sys.stderr, flush=True)

    def count_items(count: int) -> None:
        nonlocal done_count, written_tenths
        with lock:
            done_count += count
            reached_tenths = 10 * done_count // total if total else 0
            if reached_tenths > written_tenths and time.monotonic() - last_time >= min_pause:
                written_tenths = reached_tenths
                write()

    def write_after_pauses() -> None:
        while not end_event.wait(max(0.0, last_time + max_pause - time.monotonic())):
            with lock:
                if time.monotonic() - last_time >= max_pause:
                    write()

    thread = threading.Thread(target=write_after_pauses, name="casewright-progress", daemon=True)
    thread.start()
    try:
        yield count_items
    finally:
        end_event.set()
        thread.join()


def note(message: str) -> None:
    """Print one line to stderr, above the bars if there are any."""
    with _bars.lock:
        if _bars.progress is None:
            print(message, file=sys.stderr, flush=True)
        else:
            _bars.progress.console.print(message, markup=False, highlight=False, soft_wrap=True)


class _Bars:
    """The bars of concurrent threads on the terminal, one below the other."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.progress: Progress | None = None
        self._open_bars = 0

    @contextmanager
    def bar(self, description: str, total: int | None) -> Iterator[Advance]:
        with self.lock:
            if self.progress is None:
                self.progress = _rich_progress()
                self.progress.start()
            self._open_bars += 1
            progress = self.progress
        task = progress.add_task(description, total=total)
        try:
            yield lambda count: progress.advance(task, count)
        finally:
            if total is None:  # A full bar, whose total of 1 ``Count`` does not show.
                progress.update(task, total=1, completed=1)
            with self.lock:
                self._open_bars -= 1
                if not self._open_bars:
                    self.progress = None
                    progress.stop()


def _rich_progress() -> Progress:
    from rich import progress
    from rich.console import Console
    from rich.text import Text

    elapsed = progress.TimeElapsedColumn()

    class Count(progress.MofNCompleteColumn):
        """A column with the number of done items, if the total is known."""

        def render(self, task: progress.Task) -> Text:
            return super().render(task) if task.total not in (None, 1) else Text("")

    class Time(progress.TimeRemainingColumn):
        """A column with the remaining time, or the elapsed time if the total is unknown."""

        def render(self, task: progress.Task) -> Text:
            return elapsed.render(task) if task.total is None else super().render(task)

    columns = progress.TextColumn("{task.description}"), progress.BarColumn(), Count(), Time()
    # If rich redirected stdout, the caller's results would go to stderr too.
    return progress.Progress(
        *columns, console=Console(stderr=True), redirect_stdout=False, redirect_stderr=False
    )


_bars = _Bars()
