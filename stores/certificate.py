"""Proof that a selection from a few candidates is the selection from all cases.

What selection maximises for a case i, given the picks c so far, is
``w_i = lambda_d * v_i - (1 - lambda_d) * max_c s(i, c)``. A maximum is at least the mean, so
``w_i <= lambda_d * v_i - (1 - lambda_d) * mean_c s(i, c)``, which is linear in the stored vector of
i: one dot-product search per pick finds the highest bound among all cases. Where no case that was
not a candidate reaches a pick's value, the picks are those of all cases. Those that do reach it
are the only ones worth fetching.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from casewright.stores.asked import Asked, spread
from casewright.stores.engines.engine import Ranked
from casewright.stores.select import Pick


def bound_vectors(asked: Asked, picks: Sequence[Pick], lambda_d: float) -> NDArray[np.float32]:
    """Return what to search with for each pick but the first, array (picks - 1, dimension).

    The first pick needs no proof: it is the best hit.
    """
    chosen = np.array([pick.hit.vector for pick in picks[:-1]], dtype=np.float64)
    means = np.cumsum(chosen, axis=0) / np.arange(1, len(picks))[:, None]
    redundancy = np.zeros((len(means), len(asked.vector)))
    redundancy[:, :-1] = means * spread(asked.schema, asked.shares)
    vectors = lambda_d * asked.vector.astype(np.float64) - (1 - lambda_d) * redundancy
    return vectors.astype(np.float32)


def rivals(
    asked: Asked,
    picks: Sequence[Pick],
    found: Sequence[Sequence[Ranked]],
    seen: Collection[str],
    lambda_d: float,
) -> list[str]:
    """Return the ids of cases that may have been picked, had they been candidates.

    Args:
        asked: The query.
        picks: What was selected.
        found: For each pick but the first, the best cases by its bound, best first; more of them
            than there are candidates.
        seen: Ids of the candidates.
        lambda_d: Of the selection.
    """
    unseen: dict[str, None] = {}
    for pick, ranked in zip(picks[1:], found, strict=True):
        for id_, score in ranked:
            if score + lambda_d * asked.constant < pick.value - asked.slack:
                break
            if id_ not in seen:
                unseen[id_] = None
    return list(unseen)
