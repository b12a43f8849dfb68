"""Number of examples that hypothesis draws: fewer in the default run than in ``make test-all``."""

from __future__ import annotations

from hypothesis import settings

#: Share of hypothesis's default, 100 examples. In the default run, ``tests/conftest`` loads a
#: profile with fewer.
SHARE = settings().max_examples / 100


def at_most(count: int) -> int:
    """Return the number of examples to draw in this run; ``count`` is that of ``make test-all``."""
    return max(1, round(count * SHARE))
