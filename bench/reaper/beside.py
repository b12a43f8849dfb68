"""Several trainings at once, each in a process; what they find is kept in the run's folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Any

from casewright.bench.reaper.trial import ReaperTrial

#: Of a process: held while it opens the domain, whose stores one process opens at a time.
_OPENING: Any = None


def measure_beside(
    trial: ReaperTrial,
    names: Sequence[str],
    finish: Callable[[ReaperTrial, str, Any], float],
    done: Callable[[str, float], None],
) -> None:
    """Do the rows of every training, ``trial.jobs`` of them at once.

    Args:
        trial: The run.
        names: Of the trainings.
        finish: Does the rows of one; a function of a module, since a process imports it. Takes the
            lock under which the domain is to be opened, and returns the seconds that it took.
        done: Is told which one is done, and its seconds.

    Raises:
        InputError: A training failed; those that are running end first.
    """
    context = get_context("spawn")
    threads = max(1, (os.cpu_count() or 1) // trial.jobs)
    with ProcessPoolExecutor(
        trial.jobs, context, initializer=_begin, initargs=(context.Lock(), threads)
    ) as pool:
        running = {pool.submit(_finish, finish, trial, name): name for name in names}
        try:
            for one in as_completed(running):
                done(running[one], one.result())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _begin(lock: Any, threads: int) -> None:
    global _OPENING
    _OPENING = lock
    # Before torch is imported, which reads it once.
    os.environ["OMP_NUM_THREADS"] = str(threads)


def _finish(
    finish: Callable[[ReaperTrial, str, Any], float], trial: ReaperTrial, name: str
) -> float:
    return finish(trial, name, _OPENING)
