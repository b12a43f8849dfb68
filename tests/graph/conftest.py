"""Every rule of a run holds for ``invoke`` and for ``ainvoke``."""

from __future__ import annotations

import pytest

from tests.graph.helpers import Ask, Awaiting, Blocking


@pytest.fixture(params=[Blocking(), Awaiting()], ids=lambda ask: ask.mode)
def ask(request: pytest.FixtureRequest) -> Ask:
    """Runs a graph, in one mode and in the other."""
    chosen: Ask = request.param
    return chosen
