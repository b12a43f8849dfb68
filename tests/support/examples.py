"""How many examples hypothesis draws: fewer in the default run than in ``make test-all``."""

from __future__ import annotations

from hypothesis import settings

#: Of the profile that ``tests/conftest`` loads for the default run, or of hypothesis's own.
SHARE = settings().max_examples / 100


def at_most(count: int) -> int:
    """Return how many of so many examples this run draws."""
    return max(1, round(count * SHARE))
