"""Calls in threads that nobody has to join."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from casewright.tools.deadline import call_within, start_daemon

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
