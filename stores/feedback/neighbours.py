"""The chunks that stand before and after what was found, in the same document."""

from __future__ import annotations

from dataclasses import dataclass, field

from casewright.stores.documents.places import around, covering, place_of
from casewright.stores.feedback.rocchio import RocchioStrategy
from casewright.stores.feedback.strategy import Feedback, Strategy
from casewright.stores.question import Found, Question
from casewright.stores.select import check_counts


@dataclass(frozen=True, slots=True)
class NeighbourStrategy:
    """Fetches the chunks around the relevant ones; what room is left goes to another strategy.

    It is for stores of chunks that know where they stand, as ``ingest`` makes them; of other cases
    it finds no neighbours.

    Attributes:
        reach: How far before and after, in chunks.
        then: Fills up to k.

    Raises:
        InputError: The reach is no whole number, or below 1.
    """

    reach: int = 1
    then: Strategy = field(default_factory=RocchioStrategy)
    name: str = "neighbours"

    def __post_init__(self) -> None:
        check_counts(1, reach=self.reach)

    def search(self, question: Question, feedback: Feedback, k: int) -> list[Found]:
        """Fetch, then search; see ``Strategy``."""
        wanted = {place for one in feedback.relevant for place in around(one.hit.case, self.reach)}
        near = question.matching(covering(wanted), exclude=feedback.seen) if wanted else []
        near = [one for one in near if place_of(one.hit.case) in wanted][:k]
        if len(near) == k:
            return near
        have = {one.hit.case.id for one in near}
        more = self.then.search(question, feedback, k)
        return [*near, *(one for one in more if one.hit.case.id not in have)][:k]
