"""Several processes that train one model, as ``accelerate launch`` starts them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any


def rank() -> int:
    """Return which of the processes this is, from 0; 0 where there is one."""
    return int(os.environ.get("RANK", "0"))


def local_rank() -> int:
    """Return which of this machine's processes this is, from 0."""
    return int(os.environ.get("LOCAL_RANK", "0"))


def world() -> int:
    """Return how many processes there are."""
    return int(os.environ.get("WORLD_SIZE", "1"))


@contextmanager
def first_alone(*, cpu: bool) -> Iterator[bool]:
    """Run the block in the first process alone; the others wait for it, and get ``False``.

    Args:
        cpu: They compute on the CPU.
    """
    if world() > 1:
        accelerate: Any = import_module("accelerate")
        state = accelerate.PartialState(cpu=cpu)
        if rank():
            state.wait_for_everyone()
            yield False
            return
        yield True
        state.wait_for_everyone()
        return
    yield True
