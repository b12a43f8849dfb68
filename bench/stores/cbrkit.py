"""cbrkit: a case base in memory, its similarity a weighted mean over the attributes' cosines.

cbrkit has no search over an index that weighs several attributes: it compares the query with every
case in Python (Lenz et al. 2024). It takes similarity functions over all cases at once and
aggregators of one's own, which is the fastest that still yields a similarity an attribute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from operator import getitem
from typing import Any

import numpy as np

from casewright.bench.stores.data import FACETS, K, Query, Vectors, Weights, problem, solution
from casewright.bench.stores.systems import Search
from casewright.errors import DependencyError

#: The newest that Python 3.11 can install; the calls of later ones are others.
SUPPORTED = "0.14."


def check_cbrkit() -> None:
    """Raise ``DependencyError`` where cbrkit is not installed, or has another interface."""
    try:
        import cbrkit  # noqa: F401
    except ImportError as error:
        raise DependencyError(
            "bench stores compares with cbrkit, which is not installed. "
            "Run: pip install 'casewright[bench]'"
        ) from error
    installed = version("cbrkit")
    if not installed.startswith(SUPPORTED):
        raise DependencyError(
            f"bench stores compares with cbrkit {SUPPORTED}x; installed is {installed}, whose "
            "calls are others. Run: pip install 'cbrkit>=0.14,<0.15'"
        )


class Cbrkit:
    """Cases as mappings of attributes, in a dict."""

    def build(self, cases: Vectors) -> None:
        """Put all cases into memory; see ``System``."""
        # Rows of one array: nothing is copied, and those of one attribute lie side by side.
        rows = np.array(cases)
        self._cases: dict[int, dict[str, Any]] = {
            n: {
                **{name: rows[facet, n] for facet, name in enumerate(FACETS)},
                "problem": problem(n),
                "solution": solution(n),
            }
            for n in range(rows.shape[1])
        }

    def open(self) -> None:
        """cbrkit keeps nothing on disk; see ``System``."""

    def searches(self) -> Mapping[str, Search]:
        """Return cbrkit at its fastest, and as its documentation shows it; see ``System``."""
        return {"cbrkit": self._fast, "cbrkit_documented": self._documented}

    def numbers(self, answer: Any) -> Sequence[int]:
        """Return the numbers of the cases; see ``System``."""
        ranking: Sequence[int] = answer.ranking
        return ranking

    def close(self) -> None:
        """Nothing is held; see ``System``."""

    def _fast(self, query: Query, weights: Weights) -> Any:
        import cbrkit

        used = {name: weight for name, weight in weights.items() if weight > 0}

        def weighted(similarities: Any) -> float:
            return float(sum(used[name] * value for name, value in similarities.items()))

        compare = cbrkit.sim.attribute_value(
            attributes=dict.fromkeys(used, _all_cosines),
            aggregator=weighted,
            value_getter=getitem,
        )
        return cbrkit.retrieval.apply(self._cases, query, cbrkit.retrieval.build(compare, limit=K))

    def _documented(self, query: Query, weights: Weights) -> Any:
        import cbrkit

        compare = cbrkit.sim.attribute_value(
            attributes=dict.fromkeys(weights, _cosine),
            aggregator=cbrkit.sim.aggregator(pooling="mean", pooling_weights=weights),
        )
        return cbrkit.retrieval.apply(self._cases, query, cbrkit.retrieval.build(compare, limit=K))


# cbrkit tells the two kinds apart by their parameters' names.
def _all_cosines(x_map: Mapping[int, Vectors], y: Vectors) -> dict[int, float]:
    rows = list(x_map.values())
    scores = np.concatenate(rows).reshape(len(rows), -1) @ y
    return dict(zip(x_map, scores.tolist(), strict=True))


def _cosine(one: Vectors, other: Vectors) -> float:
    return float(np.dot(one, other))
