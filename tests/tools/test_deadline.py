"""Calls in daemon threads."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from casewright.errors import BusyError
from casewright.tools.deadline import (
    bound_call_threads,
    call_within,
    owner,
    running_calls,
    start_daemon,
)
from tests.support.waiting import until

STOPS = pytest.mark.parametrize(
    "error", [StopIteration, StopAsyncIteration], ids=lambda error: error.__name__
)


def raising(error: type[Exception]) -> Any:
    def call() -> None:
        raise error

    return call


@STOPS
def test_awaited_call_that_raises_stop_iteration_raises_runtime_error(
    error: type[Exception],
) -> None:
    async def awaited() -> None:
        await asyncio.wait_for(asyncio.wrap_future(start_daemon(raising(error))), 5)

    with pytest.raises(RuntimeError, match=f"raised {error.__name__}"):
        asyncio.run(awaited())


@STOPS
def test_call_within_raises_runtime_error_for_stop_iteration(error: type[Exception]) -> None:
    with pytest.raises(RuntimeError, match=f"raised {error.__name__}"):
        call_within(raising(error), 5)


def test_call_within_raises_other_errors_unchanged() -> None:
    with pytest.raises(KeyError):
        call_within(raising(KeyError), 5)


def test_call_is_refused_while_all_call_threads_are_busy() -> None:
    free = threading.Event()
    bound_call_threads(2, 2)
    try:
        with pytest.raises(TimeoutError):
            call_within(free.wait, 0.01)
        waiting = start_daemon(free.wait)
        with pytest.raises(BusyError, match="2 threads run calls"):
            start_daemon(free.wait)
        free.set()
        waiting.result(5)
        until(lambda: not running_calls())
        assert call_within(lambda: 1, 5) == 1
    finally:
        free.set()
        bound_call_threads(1024, 1024)


def test_one_owner_cannot_use_all_call_threads() -> None:
    free = threading.Event()
    bound_call_threads(4, 2)

    def begun_by(whose: str) -> None:
        token = owner.set(whose)
        try:
            start_daemon(free.wait)
        finally:
            owner.reset(token)

    try:
        begun_by("acme")
        begun_by("acme")
        with pytest.raises(BusyError, match="2 of them for this caller"):
            begun_by("acme")
        begun_by("other")
        begun_by("")
    finally:
        free.set()
        bound_call_threads(1024, 1024)


def test_later_calls_reuse_the_threads_of_finished_calls() -> None:
    def threads_of_calls() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name == "casewright-call"]

    call_within(threading.current_thread, 5)
    before = len(threads_of_calls())
    used = set()
    for _ in range(50):
        until(lambda: not running_calls())
        used.add(call_within(threading.current_thread, 5))
    # A thread may still be on its way back.
    assert len(used) < 25
    assert len(threads_of_calls()) < before + 25


def test_hanging_call_does_not_delay_later_calls() -> None:
    free = threading.Event()
    try:
        with pytest.raises(TimeoutError):
            call_within(free.wait, 0.01)
        assert call_within(lambda: 1, 5) == 1
    finally:
        free.set()
