"""A case that a judge is asked about."""

from __future__ import annotations

from dataclasses import dataclass

from casewright.stores.case import Case
from casewright.stores.facet import component_text
from casewright.stores.hit import Hit


@dataclass(frozen=True, slots=True)
class Candidate:
    """A case that was found, and may be relevant.

    Attributes:
        hit: The case, scored against the question.
        text: What a judge reads of it.
        nearness: The score by which its round's search found it.
        round: The round, from 1.
    """

    hit: Hit
    text: str
    nearness: float
    round: int

    @property
    def id(self) -> str:
        """The case's id."""
        return self.hit.case.id


def case_text(case: Case) -> str:
    """Return what a case says: the texts of its problem, one a line, and then its solution.

    What is said twice is told once; components that are no text are left out.
    """
    told = [value for value in case.problem.values() if isinstance(value, str) and value.strip()]
    if case.solution is not None:
        told.append(component_text(case.solution))
    return "\n".join(dict.fromkeys(told))
