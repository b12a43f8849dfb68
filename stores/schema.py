"""The schema of a case store: its facets, and how its cases read as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.errors import InputError
from casewright.stores.case import Case
from casewright.stores.facet import Components, Facet, component_text

#: Of what is stored beside the vectors; raised when stores written before cannot be read as now.
FORMAT = 2

#: Of a quality: its vector's number has single precision.
LARGEST = 1e30


def solution_text(case: Case) -> str:
    """Return the solution as text: what a prompt shows of a case as support only."""
    return component_text(case.solution)


def full_text(case: Case, facets: Sequence[Facet] = ()) -> str:
    """Return components, solution and result as text: the full case (CBR-RAG, equation 4b).

    Args:
        case: The case.
        facets: Those that describe components which are no text (MCBR-RAG's T_j).
    """
    read = {facet.components: facet.describe for facet in facets}
    lines = []
    for name, value in case.problem.items():
        describe = None if isinstance(value, str) else read.get((name,))
        told = component_text(value) if describe is None else describe({name: value})
        lines.append(f"{name}: {told}")
    lines.append(f"solution: {component_text(case.solution)}")
    if case.result is not None:
        lines.append(f"result: {component_text(case.result)}")
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class CaseSchema:
    """What the cases of a store have in common.

    Attributes:
        name: Names the collection, and takes part in case ids: letters, digits, ``_`` and ``-``.
        facets: How cases are compared; at least one.
        quality_range: Lowest and highest quality; what lies outside is clamped.
        support: A case as text, its support only.
        full: A case as text, whole; by default components that are no text are described by the
            facet that reads them.
        verify: Revise: called with a case before it is retained; returns ``None`` when it may be,
            else the reason why not.
        tenanted: Its cases belong to tenants: a store of it is opened for one.
        near: A problem whose similarity to a stored one reaches this is a near-duplicate, where
            the solution is the same too.
    """

    name: str
    facets: tuple[Facet, ...]
    quality_range: tuple[float, float] = (0.0, 1.0)
    support: Callable[[Case], str] = solution_text
    full: Callable[[Case], str] = full_text
    verify: Callable[[Case], str | None] | None = None
    near: float = 0.98
    tenanted: bool = False
    _slices: Mapping[str, slice] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # It names a folder, and a part of a server's URL.
        if not re.fullmatch(r"[A-Za-z0-9_-]+", self.name):
            raise InputError(
                f"A schema has the name {self.name!r}. Give it letters (a to z), digits, _ and - "
                "only, at least one of them."
            )
        names = [facet.name for facet in self.facets]
        if not names or len(set(names)) != len(names):
            raise InputError(
                f"Schema {self.name!r} has facets {names}. It needs at least one, each of its own "
                "name."
            )
        low, high = self.quality_range
        if not -LARGEST <= low < high <= LARGEST:
            raise InputError(
                f"Schema {self.name!r} has quality_range ({low}, {high}). Give two numbers, the "
                f"lower first, of at most {LARGEST:.0e} on either side of 0."
            )
        if self.full is full_text:
            object.__setattr__(self, "full", partial(full_text, facets=self.facets))
        start, slices = 0, {}
        for facet in self.facets:
            slices[facet.name] = slice(start, start + facet.dimension)
            start += facet.dimension
        object.__setattr__(self, "_slices", slices)

    @property
    def dimension(self) -> int:
        """Length of a stored vector: the facets' vectors and one number for the quality."""
        return sum(facet.dimension for facet in self.facets) + 1

    @property
    def slices(self) -> Mapping[str, slice]:
        """Where each facet's vector stands in the stored one."""
        return self._slices

    def weights(self, given: Mapping[str, float] | None = None) -> NDArray[np.float64]:
        """Return one weight a facet, summing to 1; ``given`` replaces the facets' defaults.

        Raises:
            InputError: An unknown facet, a weight that is no number or negative, or nothing but
                zeros.
        """
        names = [facet.name for facet in self.facets]
        if given is not None and (unknown := sorted(set(given) - set(names))):
            raise InputError(
                f"Schema {self.name!r} has no facet {unknown}. Its facets are {names}."
            )
        chosen = [f.weight if given is None else given.get(f.name, 0.0) for f in self.facets]
        try:
            values = np.asarray(chosen, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            values = np.array([np.nan])
        if not np.isfinite(values).all() or (values < 0).any() or not values.any():
            raise InputError(
                f"The weights {dict(zip(names, chosen, strict=True))} of schema {self.name!r} "
                "cannot be used. Weights are finite numbers, at least 0 and not all 0."
            )
        # The sum of two large weights may be infinite.
        values /= values.max()
        shares: NDArray[np.float64] = values / values.sum()
        return shares

    def query(self, text: str) -> Components:
        """Return a problem in which every component that facets take text for is this text.

        One that any facet reads as something else than text is left out.
        """
        texts = {name for facet in self.facets if facet.takes_text for name in facet.components}
        others = {name for f in self.facets if not f.takes_text for name in f.components}
        return dict.fromkeys(sorted(texts - others), text)

    def check_query(
        self, problem: Components, weights: Mapping[str, float] | None, lambda_b: float
    ) -> None:
        """Look whether cases can be compared with a problem.

        Raises:
            InputError: The weights cannot be used, or none of the facets that they weigh can read
                the problem, where similarity counts at all.
        """
        shares = self.weights(weights)
        weighed = [facet for facet, share in zip(self.facets, shares, strict=True) if share]
        if lambda_b and not any(facet.reads(problem) for facet in weighed):
            needed = {facet.name: list(facet.components) for facet in weighed}
            raise InputError(
                f"A search of {self.name!r} was asked for {dict(problem)!r:.200}, of which no "
                f"facet that is weighed can read enough. They read: {needed}."
            )

    def vectors(self, problems: Sequence[Components], *, query: bool = False) -> NDArray[Any]:
        """Embed problems as concatenated unit vectors, array (n, sum of dimensions)."""
        return np.concatenate([f.vectors(problems, query=query) for f in self.facets], axis=1)

    def layout(self) -> dict[str, Any]:
        """Return what a collection must agree on with the schema it is opened with."""
        return {
            "format": FORMAT,
            "schema": self.name,
            "quality_range": list(self.quality_range),
            "facets": [
                {
                    "name": facet.name,
                    "components": list(facet.components),
                    "dimension": facet.dimension,
                    "model": facet.model,
                }
                for facet in self.facets
            ],
        }
