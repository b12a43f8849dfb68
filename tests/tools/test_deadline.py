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
def test_a_call_that_stops_an_iteration_fails_who_awaits_it_at_once(error: type[Exception]) -> None:
    async def awaited() -> None:
        await asyncio.wait_for(asyncio.wrap_future(start_daemon(raising(error))), 5)

    with pytest.raises(RuntimeError, match=f"raised {error.__name__}"):
        asyncio.run(awaited())


@STOPS
def test_a_call_that_stops_an_iteration_fails_who_waits_for_it(error: type[Exception]) -> None:
    with pytest.raises(RuntimeError, match=f"raised {error.__name__}"):
        call_within(raising(error), 5)


def test_any_other_error_is_raised_as_it_is() -> None:
    with pytest.raises(KeyError):
        call_within(raising(KeyError), 5)


def test_places_for_threads_are_free_once_these_have_ended_and_not_before() -> None:
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


def test_one_owner_leaves_places_to_others() -> None:
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


def test_a_later_call_runs_in_the_thread_of_one_that_has_ended() -> None:
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


def test_a_call_that_hangs_keeps_no_later_call_waiting() -> None:
    free = threading.Event()
    try:
        with pytest.raises(TimeoutError):
            call_within(free.wait, 0.01)
        assert call_within(lambda: 1, 5) == 1
    finally:
        free.set()
