"""How many examples hypothesis draws: fewer in the default run than in ``make test-all``."""

from __future__ import annotations

from hypothesis import settings

#: Of the profile that ``tests/conftest`` loads for the default run, or hypothesis's own hundred.
SHARE = settings().max_examples / 100


def examples(most: int) -> int:
    """Return how many of so many examples this run draws."""
    return max(1, round(most * SHARE))
