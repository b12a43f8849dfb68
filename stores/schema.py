"""The schema of a case store: its facets, and the text forms of its cases."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.errors import InputError
from casewright.stores.case import Case
from casewright.stores.facet import Components, Facet, component_text

#: Version of the payloads' format, which is increased if older stores cannot be read any more.
FORMAT = 2

#: Maximum absolute value of a quality, since the vector stores it in single precision.
MAX_QUALITY = 1e30


def solution_text(case: Case) -> str:
    """Return a case's solution as its support: the text that stands for the case in a prompt."""
    return component_text(case.solution)


def full_text(case: Case, facets: Sequence[Facet] = ()) -> str:
    """Return components, solution and result as text: the full case (CBR-RAG, equation 4b).

    ``Facet.describe`` turns components that are not texts into texts (MCBR-RAG's T_j).
    """
    descriptions = {facet.components: facet.describe for facet in facets}
    lines = []
    for name, value in case.problem.items():
        describe = None if isinstance(value, str) else descriptions.get((name,))
        text = component_text(value) if describe is None else describe({name: value})
        lines.append(f"{name}: {text}")
    lines.append(f"solution: {component_text(case.solution)}")
    if case.result is not None:
        lines.append(f"result: {component_text(case.result)}")
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class CaseSchema:
    """The schema of a store's cases.

    Attributes:
        name: The collection's name (letters, digits, ``_``, ``-``). Case ids depend on it too.
        facets: The facets by which cases are compared; at least one.
        quality_range: Lowest and highest quality; other values are clamped.
        support: Returns the text that stands for a case in a prompt; by default the solution.
        full: Returns the full case as text; by default ``full_text``.
        verify: The Revise step, called with a case before it is retained; returns ``None`` or the
            reason to refuse the case.
        tenanted: True if cases belong to tenants; a store must then be opened for one tenant.
        near: Cases with equal solutions are duplicates if their problems are at least this similar.
        slices: The position of each facet's vector in a stored vector, by the facet's name.
    """

    name: str
    facets: tuple[Facet, ...]
    quality_range: tuple[float, float] = (0.0, 1.0)
    support: Callable[[Case], str] = solution_text
    full: Callable[[Case], str] = full_text
    verify: Callable[[Case], str | None] | None = None
    near: float = 0.98
    tenanted: bool = False
    slices: Mapping[str, slice] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # The name is also a folder name, and a part of a server's URL.
        if not re.fullmatch(r"[A-Za-z0-9_-]+", self.name):
            advice = "Give it letters (a to z), digits, _ and - only, at least one of them."
            raise InputError(f"A schema has the name {self.name!r}. {advice}")
        names = [facet.name for facet in self.facets]
        if not names or len(set(names)) != len(names):
            rule = "It needs at least one, each of its own name."
            raise InputError(f"Schema {self.name!r} has facets {names}. {rule}")
        low, high = self.quality_range
        if not -MAX_QUALITY <= low < high <= MAX_QUALITY:
            raise InputError(
                f"Schema {self.name!r} has quality_range ({low}, {high}). Give two numbers, the "
                f"lower first, of at most {MAX_QUALITY:.0e} on either side of 0."
            )
        if self.full is full_text:
            object.__setattr__(self, "full", partial(full_text, facets=self.facets))
        offsets = accumulate((facet.dimension for facet in self.facets), initial=0)
        slices = {name: slice(*pair) for name, pair in zip(names, pairwise(offsets), strict=True)}
        object.__setattr__(self, "slices", slices)

    @property
    def dimension(self) -> int:
        """The length of a stored vector: the facets' vectors and one number for the quality."""
        return sum(facet.dimension for facet in self.facets) + 1

    def weights(self, given: Mapping[str, float] | None = None) -> NDArray[np.float64]:
        """Return weights that sum to 1: the default ones, or ``given`` and 0 for facets not in it.

        Raise ``InputError`` for unknown facets, and for weights below 0, not finite, or all 0.
        """
        names = [facet.name for facet in self.facets]
        if given is not None and (unknown := sorted(set(given) - set(names))):
            problem = f"Schema {self.name!r} has no facet {unknown}"
            raise InputError(f"{problem}. Its facets are {names}.")
        raw_weights = [f.weight if given is None else given.get(f.name, 0.0) for f in self.facets]
        try:
            values = np.asarray(raw_weights, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            values = np.array([np.nan])
        if not np.isfinite(values).all() or (values < 0).any() or not values.any():
            raise InputError(
                f"The weights {dict(zip(names, raw_weights, strict=True))} of schema {self.name!r} "
                "cannot be used. Weights are finite numbers, at least 0 and not all 0."
            )
        # The sum of two large weights may be infinite.
        values /= values.max()
        shares: NDArray[np.float64] = values / values.sum()
        return shares

    def query(self, text: str) -> Components:
        """Return a problem with the text in each component that only ``takes_text`` facets read."""
        text_components, others = set[str](), set[str]()
        for facet in self.facets:
            (text_components if facet.takes_text else others).update(facet.components)
        return dict.fromkeys(sorted(text_components - others), text)

    def check_query(
        self, problem: Components, weights: Mapping[str, float] | None, lambda_b: float
    ) -> None:
        """Raise ``InputError`` for bad weights, or if no facet with a weight can read the problem.

        With ``lambda_b=0``, similarity does not count and any problem is allowed.
        """
        shares = self.weights(weights)
        weighted_facets = [facet for facet, share in zip(self.facets, shares, strict=True) if share]
        if lambda_b and not any(facet.reads(problem) for facet in weighted_facets):
            needed = {facet.name: list(facet.components) for facet in weighted_facets}
            raise InputError(
                f"A search of {self.name!r} was given {dict(problem)!r:.200}, which lacks "
                f"a component of every facet with a weight. The facets read: {needed}."
            )

    def vectors(self, problems: Sequence[Components], *, query: bool = False) -> NDArray[Any]:
        """Embed problems as concatenated unit vectors, array (n, sum of dimensions)."""
        return np.concatenate([f.vectors(problems, query=query) for f in self.facets], axis=1)

    def layout(self) -> dict[str, Any]:
        """Return the properties that must be the same in a collection and in its schema."""
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
