"""Earlier turns with their plans and subjects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from casewright.planner.history.back_references import BackReference
from casewright.planner.history.mentions import Mention, by_price, by_word, named_in
from casewright.planner.history.rebinding import Rebinding
from casewright.planner.plan import Literal, Plan


@dataclass(frozen=True, slots=True)
class PlannedTurn:
    """Earlier turn with its plan.

    Attributes:
        question: The question, completed if it was elliptic and the rest is known.
        things: Things that the plan finds by name.
        listed: Things in the answer to a search or to a question about a page.
    """

    question: str
    plan: Plan
    things: tuple[Mention, ...]
    listed: tuple[Mention, ...]


def planned_turn(question: str, answer: str, plan: Plan, rebinding: Rebinding) -> PlannedTurn:
    """Return a turn with the things that its plan and its answer name."""
    things = []
    for step in plan.steps:
        name = rebinding.name_in(step)
        if isinstance(name, Literal) and isinstance(name.value, str):
            things.append(Mention(name.value, "", step.tool))
    listed: list[Mention] = []
    if rebinding.searches(plan) or rebinding.uses_page(plan):
        last = plan.steps[-1].tool
        finder = last if last in rebinding.finders else next(iter(rebinding.finders))
        listed = named_in(answer, finder)
    return PlannedTurn(question, plan, tuple(things), tuple(listed))


class Talk:
    """Subjects of earlier turns.

    Args:
        turns: At least one, the earliest first.
    """

    def __init__(self, turns: Sequence[PlannedTurn]) -> None:
        self.turns = turns
        self.last = turns[-1]

    def subject(self) -> Mention | None:
        """Return the subject of the last turn that was about a thing."""
        for turn in reversed(self.turns):
            for thing in (*turn.listed[:1], *turn.things[:1]):
                return thing
        return None

    def listed(self) -> Sequence[Mention]:
        """Return the last list: the results of a search, or compared things."""
        for turn in reversed(self.turns):
            for several in (turn.things, turn.listed):
                if len(several) > 1:
                    return several
        return next((turn.listed for turn in reversed(self.turns) if turn.listed), ())

    def several(self) -> list[Mention]:
        """Return the last two things of the conversation."""
        if len(self.last.things) > 1 or len(self.last.listed) > 1:
            return list(self.listed()[:2])
        things: list[Mention] = []
        for turn in reversed(self.turns):
            for thing in (*turn.listed[:1], *turn.things[:1])[:1]:
                if thing.name not in [other.name for other in things]:
                    things.append(thing)
        return things[1::-1] if len(things) > 1 else []

    def pointee(self, reference: BackReference) -> Mention | None:
        """Return the thing to which words of a question refer, if it is known."""
        listed, subject = self.listed(), self.subject()
        match reference.kind:
            case "ordinal":
                within = -len(listed) <= reference.position < len(listed)
                return listed[reference.position] if within else None
            case "other":
                last = [thing.name for thing in self.last.things[:1]]
                return next((mention for mention in listed if mention.name not in last), None)
            case "price":
                return by_price(listed, reference.position)
            case "attribute":
                mention = by_word(listed, reference.word)
                if mention is None and subject is not None:
                    return Mention(_variant(subject.name, reference.word), "", subject.tool)
                return mention
            case _:
                return subject


def _variant(name: str, word: str) -> str:
    """Return a thing's name with another word instead of its numbers."""
    *before, kind = [part for part in name.split() if not any(c.isdigit() for c in part)] or [name]
    return " ".join((*before, word, kind))
