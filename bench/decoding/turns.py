"""Systems that are compared take turns, so that what else the machine does meets all of them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TypeVar

from casewright.stores.progress import progress_bar

if TYPE_CHECKING:
    import torch

Work = TypeVar("Work")
Done = TypeVar("Done")
#: Pieces of work that each system does before it is timed.
WARM = 1


def take_turns(
    systems: Mapping[str, Callable[[Work], Done]],
    work: Sequence[Work],
    repeats: int,
    description: str,
    warmed: Collection[str] = (),
) -> dict[str, list[Done]]:
    """Let every system do every piece of work, one system after the other, none always first.

    Before, each does the first pieces for nothing, so that no first call counts.

    Args:
        systems: By name.
        work: What is to be done.
        repeats: How often each piece is done by each.
        description: Of the progress bar.
        warmed: The systems that do all pieces before, since they record what they need first.

    Returns:
        By name what was done, in the order of the work, ``repeats`` times.
    """
    names = list(systems)
    done: dict[str, list[Done]] = {name: [] for name in names}
    warm = [(name, one) for name in names for one in (work if name in warmed else work[:WARM])]
    count = len(warm) + len(names) * len(work) * repeats
    with slow_progress(description, count) as advance:
        for name, one in warm:
            systems[name](one)
            advance(1)
        for repeat in range(repeats):
            for place, one in enumerate(work):
                first = (repeat + place) % len(names)
                for name in (*names[first:], *names[:first]):
                    done[name].append(systems[name](one))
                    advance(1)
    return done


def slow_progress(description: str, total: int) -> AbstractContextManager[Callable[[int], None]]:
    """Show a bar on a terminal over few items, each of which takes long; see ``progress_bar``."""
    return progress_bar(description, total, show=sys.stderr.isatty())


def timed(device: torch.device, work: Callable[[], Done]) -> tuple[Done, float]:
    """Do something on a device; return what came of it, and the milliseconds that it took."""
    synchronize(device)
    started = time.perf_counter()
    done = work()
    synchronize(device)
    return done, (time.perf_counter() - started) * 1000


def synchronize(device: torch.device) -> None:
    """Wait until a GPU has done what it was given."""
    import torch

    if device.type == "cuda":
        torch.cuda.synchronize(device)
