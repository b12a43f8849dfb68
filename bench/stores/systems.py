"""Systems that keep cases and search them: Casewright's own store, and cbrkit beside it.

cbrkit has no search over an index that weighs several attributes: it compares the query with every
case in Python (Lenz et al. 2024). Similarity functions over all cases at once with an aggregator of
one's own are its fastest form that still yields a similarity an attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from operator import getitem
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID

import numpy as np

from casewright.bench.stores.data import (
    DIMENSION,
    FACETS,
    K,
    Query,
    Vectors,
    Weights,
    texts_of,
)
from casewright.errors import DependencyError
from casewright.stores import Case, CaseSchema, CaseStore, Facet, Hit
from casewright.stores.facet import Components

Search = Callable[[Query, Weights], Any]
#: The newest cbrkit that Python 3.11 can install; the calls of later ones are others.
SUPPORTED = "0.14."


class System(Protocol):
    """A system over a folder of its own, in a process of its own."""

    def build(self, cases: Vectors) -> None:
        """Take in all cases, unit vectors (facets, cases, dimension), and their texts."""

    def open(self) -> None:
        """Be ready to search what was built, in another process where it is kept on disk."""

    def searches(self) -> Mapping[str, Search]:
        """Return the ways to search, by name: each as its user calls it, cases in its answer."""

    def numbers(self, answer: Any) -> Sequence[int]:
        """Return the numbers of the cases in an answer, best first."""

    def close(self) -> None:
        """Let go of the folder."""


class Casewright:
    """A ``CaseStore``: all facets in one vector, one search, hits with cases.

    Vectors are looked up by the number in a text: no encoder's time is measured.
    """

    def __init__(self, folder: Path, engine: str) -> None:
        self._folder = folder
        self._engine = engine
        self._rows = np.empty((len(FACETS), 0, DIMENSION), dtype=np.float32)
        self._schema = CaseSchema("bench", tuple(self._facet(n) for n in range(len(FACETS))))

    def build(self, cases: Vectors) -> None:
        """Add all cases by one call; see ``System``."""
        self._store = CaseStore(self._schema, self._folder, engine=self._engine)
        added = (Case(**texts_of(n), id=str(UUID(int=n))) for n in range(cases.shape[1]))
        kept, self._rows = self._rows, cases
        self._store.add(added, progress=False)
        self._rows = kept

    def open(self) -> None:
        """Open the folder and load it, as the first call that reads it does; see ``System``."""
        self._store = CaseStore(self._schema, self._folder)
        self._store.get(str(UUID(int=0)))

    def searches(self) -> Mapping[str, Search]:
        """Return the one way to search; see ``System``."""
        return {"casewright": lambda query, weights: self._store.search(query, K, weights=weights)}

    def numbers(self, answer: list[Hit]) -> Sequence[int]:
        """Return the numbers of the cases; see ``System``."""
        return [UUID(hit.case.id).int for hit in answer]

    def close(self) -> None:
        """Close the store; see ``System``."""
        self._store.close()

    def _facet(self, number: int) -> Facet:
        name = FACETS[number]

        def embed_case(problems: Sequence[Components]) -> Vectors:
            numbers = [int(problem[name].split(" ", 1)[0]) for problem in problems]
            vectors: Vectors = self._rows[number, numbers]
            return vectors

        def embed_query(problems: Sequence[Components]) -> Vectors:
            return np.stack([problem[name] for problem in problems])

        return Facet(name, (name,), DIMENSION, embed_case, embed_query, str, model="looked up")


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
    """Cases as mappings of attributes, in a dict; nothing is kept on disk."""

    def build(self, cases: Vectors) -> None:
        """Put all cases into memory; see ``System``."""
        # Rows of one array: nothing is copied, and those of one attribute lie side by side.
        rows = np.array(cases)
        self._cases: dict[int, dict[str, Any]] = {
            n: {**{name: rows[facet, n] for facet, name in enumerate(FACETS)}, **texts_of(n)}
            for n in range(rows.shape[1])
        }

    def open(self) -> None:
        """Do nothing; see ``System``."""

    def close(self) -> None:
        """Do nothing; see ``System``."""

    def searches(self) -> Mapping[str, Search]:
        """Return cbrkit at its fastest, and as its documentation shows it; see ``System``."""
        return {"cbrkit": self._fast, "cbrkit_documented": self._documented}

    def numbers(self, answer: Any) -> Sequence[int]:
        """Return the numbers of the cases; see ``System``."""
        ranking: Sequence[int] = answer.ranking
        return ranking

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


# The parameters' names are cbrkit's way to know the kind of a function.
def _all_cosines(x_map: Mapping[int, Vectors], y: Vectors) -> dict[int, float]:
    rows = list(x_map.values())
    scores = np.concatenate(rows).reshape(len(rows), -1) @ y
    return dict(zip(x_map, scores.tolist(), strict=True))


def _cosine(one: Vectors, other: Vectors) -> float:
    return float(np.dot(one, other))
