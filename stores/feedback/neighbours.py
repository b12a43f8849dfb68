"""The chunks that stand before and after what was found, in the same document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from casewright.errors import InputError
from casewright.stores.feedback.rocchio import RocchioStrategy
from casewright.stores.feedback.strategy import Feedback, Strategy
from casewright.stores.question import Found, Question

PLACE = ("root", "source", "position")


@dataclass(frozen=True, slots=True)
class NeighbourStrategy:
    """Fetches the chunks around the relevant ones; what room is left goes to another strategy.

    It is for stores of chunks that know where they stand, as ``ingest`` makes them; of other cases
    it finds no neighbours.

    Attributes:
        reach: How far before and after, in chunks.
        then: Fills up to k.

    Raises:
        InputError: The reach is below 1.
    """

    reach: int = 1
    then: Strategy = field(default_factory=RocchioStrategy)
    name: str = "neighbours"

    def __post_init__(self) -> None:
        if self.reach < 1:
            raise InputError(f"NeighbourStrategy has reach={self.reach}. Give at least 1.")

    def search(self, question: Question, feedback: Feedback, k: int) -> list[Found]:
        """Fetch, then search; see ``Strategy``."""
        near = question.matching(self._wanted(feedback), exclude=feedback.seen)[:k]
        if len(near) == k:
            return near
        have = {one.hit.case.id for one in near}
        more = self.then.search(question, feedback, k)
        return [*near, *(one for one in more if one.hit.case.id not in have)][:k]

    def _wanted(self, feedback: Feedback) -> list[Mapping[str, Any]]:
        """Return one condition a document: these positions in it."""
        places: dict[tuple[Any, Any], set[int]] = {}
        for one in feedback.relevant:
            known = one.hit.case.metadata
            if all(name in known for name in PLACE) and isinstance(known["position"], int):
                at = known["position"]
                near = {*range(at - self.reach, at + self.reach + 1)} - {at}
                places.setdefault((known["root"], known["source"]), set()).update(near)
        return [
            {"root": root, "source": source, "position": sorted(at for at in wanted if at > 0)}
            for (root, source), wanted in places.items()
        ]
