"""What is measured: systems that keep cases and search them; here, Casewright's own store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    number_of,
    problem,
    solution,
)
from casewright.stores import Case, CaseSchema, CaseStore, Facet, Hit
from casewright.stores.facet import Components

Search = Callable[[Query, Weights], Any]


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

    Vectors are looked up by the number that a text tells: no encoder's time is measured.
    """

    def __init__(self, folder: Path, engine: str) -> None:
        self._folder = folder
        self._engine = engine
        self._rows = np.empty((len(FACETS), 0, DIMENSION), dtype=np.float32)
        self._schema = CaseSchema("bench", tuple(self._facet(n) for n in range(len(FACETS))))

    def build(self, cases: Vectors) -> None:
        """Add all cases by one call; see ``System``."""
        self._store = CaseStore(self._schema, self._folder, engine=self._engine)
        numbers = range(cases.shape[1])
        made = (Case(problem(n), solution(n), id=str(UUID(int=n))) for n in numbers)
        kept, self._rows = self._rows, cases
        self._store.add(made, progress=False)
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

    def _facet(self, place: int) -> Facet:
        name = FACETS[place]

        def embed_case(problems: Sequence[Components]) -> Vectors:
            found: Vectors = self._rows[place, [number_of(problem[name]) for problem in problems]]
            return found

        def embed_query(problems: Sequence[Components]) -> Vectors:
            return np.stack([problem[name] for problem in problems])

        return Facet(name, (name,), DIMENSION, embed_case, embed_query, str, model="looked up")
