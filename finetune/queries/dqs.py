"""REAPER's Diverse Query Sampler (DQS; Joshi et al. 2024, section on training data).

A few queries are there, annotated; many more could be. The sampler looks for those that are most
like the ones there are and for those that are least like them, and samples among these. Its steps:

1. embed both pools;
2. the similarity matrix between them;
3. for each query of the initial pool its extremes: the m most and the m least similar queries of
   the large pool;
4. the refined pool: all extremes, each once;
5. a sample of as many as the initial pool has.

As printed, the fifth step samples the large pool, which leaves the four before it without effect:
that is ``source="large"``, a uniform sample. ``source="refined"`` samples what was refined.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from casewright.errors import InputError
from casewright.finetune.queries.similarity import (
    COLUMNS,
    DECIMALS,
    ROWS,
    Vectors,
    blocks,
    check_pools,
    units,
)
from casewright.finetune.recipe.section import Section

#: Above every index of a pool; a key holds a similarity above it and an index below.
_PLACES = 1 << 32


class DqsSettings(Section):
    """How queries are sampled.

    Attributes:
        extremes: How many most similar and how many least similar queries of the large pool each
            query of the initial pool names: m.
        source: What the last step samples: the refined pool, or the large one as printed.
        size: How many are sampled; as many as the initial pool has by default.
    """

    extremes: int = Field(default=10, ge=1)
    source: Literal["refined", "large"] = "refined"
    size: int | None = Field(default=None, ge=1)


def sample_dqs(
    initial: Vectors, large: Vectors, settings: DqsSettings | None = None, *, seed: int = 0
) -> list[int]:
    """Sample the large pool; see the module.

    Args:
        initial: Array (n, d), the embedded initial pool.
        large: Array (N, d), the embedded large pool; equal queries are best taken out before.
        settings: Extremes, source and size.
        seed: Of the sample.

    Returns:
        Rows of the large pool, ascending.

    Raises:
        InputError: A pool is empty or no array of vectors, or there are fewer queries to sample
            than are wanted.
    """
    chosen = settings or DqsSettings()
    check_pools(initial, large)
    size = chosen.size or len(initial)
    if not size or not len(initial):
        raise InputError("The initial pool is empty. DQS needs at least one query to start from.")
    if chosen.source == "large":
        pool, mend = np.arange(len(large)), "Give a larger pool, or ask for fewer."
    else:
        pool = refined_pool(initial, large, chosen.extremes)
        mend = f"Raise the extremes (now {chosen.extremes}), or ask for fewer."
    if len(pool) < size:
        raise InputError(
            f"{size:,} queries are to be sampled, and the {chosen.source} pool has "
            f"{len(pool):,}. {mend}"
        )
    drawn = np.random.default_rng(seed).choice(pool, size, replace=False)
    return sorted(map(int, drawn))


def refined_pool(initial: Vectors, large: Vectors, m: int) -> NDArray[np.int64]:
    """Return the union of all extremes: rows of the large pool, ascending, each once.

    The similarity matrix is made in blocks of rows and of columns; of each row only the best m and
    the worst m so far are kept. Similarities are compared to six decimals; of equal ones the lower
    index is taken.

    Args:
        initial: Array (n, d).
        large: Array (N, d).
        m: Extremes at either end; all of the large pool where it has fewer.
    """
    found = np.zeros(len(large), dtype=bool)
    for part in blocks(len(initial), ROWS):
        own = units(initial[part])
        most = least = np.empty((len(own), 0), dtype=np.int64)
        for place in blocks(len(large), COLUMNS):
            steps = np.rint(own @ units(large[place]).T * 10**DECIMALS).astype(np.int64)
            index = np.arange(place.start, place.stop)
            # One whole number holds similarity and index: no two keys are equal, and the highest
            # are the ones to keep, ties decided.
            most = _highest(most, steps * _PLACES - index, m)
            least = _highest(least, -steps * _PLACES - index, m)
        for keys in (most, least):
            found[(-keys % _PLACES).ravel()] = True
    return np.flatnonzero(found)


def _highest(kept: NDArray[np.int64], fresh: NDArray[np.int64], m: int) -> NDArray[np.int64]:
    """Return the m highest keys of each row."""
    keys = np.concatenate([kept, fresh], axis=1)
    if keys.shape[1] <= m:
        return keys
    keys.partition(keys.shape[1] - m, axis=1)
    return keys[:, -m:].copy()
