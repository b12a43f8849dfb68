"""A case that a judge is asked about."""

from __future__ import annotations

from dataclasses import dataclass

from casewright.stores.case import Case
from casewright.stores.documents.places import place_of
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

    @property
    def source(self) -> tuple[str, str]:
        """Root and source of a chunk, as ``ingest`` names them; empty of other cases."""
        root, source = (self.hit.case.metadata.get(name) for name in ("root", "source"))
        return (
            root if isinstance(root, str) else "",
            source.strip() if isinstance(source, str) else "",
        )

    def same_source(self, other: Candidate) -> bool:
        """Return whether both are of one document."""
        return bool(self.source[1]) and self.source == other.source

    def beside(self, other: Candidate) -> bool:
        """Return whether one stands right before or after the other, in one document."""
        here, there = place_of(self.hit.case), place_of(other.hit.case)
        if here is None or there is None:
            return False
        return here[:2] == there[:2] and abs(here[2] - there[2]) == 1


def case_text(case: Case) -> str:
    """Return what a case says: the texts of its problem, one a line, and then its solution.

    What is said twice is told once; components that are no text are left out.
    """
    told = [value for value in case.problem.values() if isinstance(value, str) and value.strip()]
    if case.solution is not None:
        told.append(component_text(case.solution))
    return "\n".join(dict.fromkeys(told))
