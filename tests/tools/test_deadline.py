"""Calls in daemon threads: their limits, errors and reuse of threads."""

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
    async def await_call() -> None:
        await asyncio.wait_for(asyncio.wrap_future(start_daemon(raising(error))), 5)

    with pytest.raises(RuntimeError, match=f"raised {error.__name__}"):
        asyncio.run(await_call())


@STOPS
def test_call_within_raises_runtime_error_for_stop_iteration(error: type[Exception]) -> None:
    with pytest.raises(RuntimeError, match=f"raised {error.__name__}"):
        call_within(raising(error), 5)


def test_call_within_raises_other_errors_unchanged() -> None:
    with pytest.raises(KeyError):
        call_within(raising(KeyError), 5)


def test_call_is_refused_while_all_call_threads_are_busy() -> None:
    release = threading.Event()
    bound_call_threads(2, 2)
    try:
        with pytest.raises(TimeoutError):
            call_within(release.wait, 0.01)
        pending = start_daemon(release.wait)
        with pytest.raises(BusyError, match="2 threads run calls"):
            start_daemon(release.wait)
        release.set()
        pending.result(5)
        until(lambda: not running_calls())
        assert call_within(lambda: 1, 5) == 1
    finally:
        release.set()
        bound_call_threads(1024, 1024)


def test_one_owner_cannot_use_all_call_threads() -> None:
    release = threading.Event()
    bound_call_threads(4, 2)

    def start_call(owner_name: str) -> None:
        token = owner.set(owner_name)
        try:
            start_daemon(release.wait)
        finally:
            owner.reset(token)

    try:
        start_call("acme")
        start_call("acme")
        with pytest.raises(BusyError, match="2 of them for this caller"):
            start_call("acme")
        start_call("other")
        start_call("")
    finally:
        release.set()
        bound_call_threads(1024, 1024)


def test_later_calls_reuse_the_threads_of_finished_calls() -> None:
    def call_threads() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name == "casewright-call"]

    call_within(threading.current_thread, 5)
    before = len(call_threads())
    threads = set()
    for _ in range(50):
        until(lambda: not running_calls())
        threads.add(call_within(threading.current_thread, 5))
    # A finished call's thread may not be available yet.
    assert len(threads) < 25
    assert len(call_threads()) < before + 25


def test_hanging_call_does_not_delay_later_calls() -> None:
    release = threading.Event()
    try:
        with pytest.raises(TimeoutError):
            call_within(release.wait, 0.01)
        assert call_within(lambda: 1, 5) == 1
    finally:
        release.set()
