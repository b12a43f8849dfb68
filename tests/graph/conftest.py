"""The fixture that runs each test twice: with ``invoke`` and with ``ainvoke``."""

from __future__ import annotations

import pytest

from tests.graph.helpers import Ask, Awaiting, Blocking


@pytest.fixture(params=[Blocking(), Awaiting()], ids=lambda ask: ask.mode)
def ask(request: pytest.FixtureRequest) -> Ask:
    """Return a function that runs a graph, once per mode."""
    ask_in_mode: Ask = request.param
    return ask_in_mode
