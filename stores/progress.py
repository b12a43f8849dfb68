"""Progress of long work, on stderr, so that stdout holds results only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Work of fewer items than this is over before a bar could be read.
WORTH_A_BAR = 500


@contextmanager
def progress_bar(
    description: str, total: int, *, show: bool | None = None
) -> Iterator[Callable[[int], None]]:
    """Show a bar over ``total`` items and yield a function that advances it by n.

    Args:
        description: What is being done, in a few words.
        total: Number of items.
        show: ``True`` or ``False`` to force it; ``None`` shows it on a terminal where the work is
            long enough.
    """
    if show is None:
        show = sys.stderr.isatty() and total >= WORTH_A_BAR
    if not show:
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    # Redirected, what a caller prints meanwhile would end up on stderr too.
    console = Console(stderr=True)
    with Progress(*columns, console=console, redirect_stdout=False, redirect_stderr=False) as bar:
        task = bar.add_task(description, total=total)
        yield lambda count: bar.advance(task, count)


def note(message: str) -> None:
    """Print one line about long work to stderr."""
    print(message, file=sys.stderr, flush=True)
