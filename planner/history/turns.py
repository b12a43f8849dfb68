"""Earlier turns as they are understood, and what they talked of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from casewright.planner.history import rebinding
from casewright.planner.history.back_references import BackReference
from casewright.planner.history.mentions import Mention, by_price, by_word, named_in
from casewright.planner.plan import Literal, Plan
from casewright.tools import Toolbox


@dataclass(frozen=True, slots=True)
class Turn:
    """An earlier turn, as it is understood.

    Attributes:
        question: What it asked, with what it left out where that is known.
        plan: Its plan.
        things: What the plan finds by name.
        listed: What its answer names, where it was a search or asked of a page.
    """

    question: str
    plan: Plan
    things: tuple[Mention, ...]
    listed: tuple[Mention, ...]


def understood(question: str, answer: str, plan: Plan, toolbox: Toolbox) -> Turn:
    """Return a turn as its question, its answer and its plan tell it."""
    by = rebinding.finders(toolbox)
    things = []
    for step in plan.steps:
        name = step.argument(by[step.tool]) if step.tool in by else None
        if isinstance(name, Literal) and isinstance(name.value, str):
            things.append(Mention(name.value, "", step.tool))
    listed: list[Mention] = []
    if searches(plan, by) or rebinding.of_page(plan, rebinding.page_fields(toolbox)):
        last = plan.steps[-1].tool
        listed = named_in(answer, last if last in by else next(iter(by)))
    return Turn(question, plan, tuple(things), tuple(listed))


def searches(plan: Plan, by: dict[str, str]) -> bool:
    """Return whether what a plan finds is what was asked for."""
    return plan.steps[-1].tool in by


class Talk:
    """Things that earlier turns were about.

    Args:
        turns: At least one, the earliest first.
    """

    def __init__(self, turns: Sequence[Turn]) -> None:
        self.turns = turns
        self.last = turns[-1]

    def subject(self) -> Mention | None:
        """Return what the last turn that was about a thing was about."""
        for turn in reversed(self.turns):
            if turn.listed:
                return turn.listed[0]
            if turn.things:
                return turn.things[0]
        return None

    def listed(self) -> Sequence[Mention]:
        """Return the last list: of a search's answer, or of things that were compared."""
        for turn in reversed(self.turns):
            for several in (turn.things, turn.listed):
                if len(several) > 1:
                    return several
        return next((turn.listed for turn in reversed(self.turns) if turn.listed), ())

    def several(self) -> list[Mention]:
        """Return the two things that were last talked of."""
        last = self.turns[-1]
        if len(last.things) > 1 or len(last.listed) > 1:
            return list(self.listed()[:2])
        things: list[Mention] = []
        for turn in reversed(self.turns):
            for thing in (*turn.listed[:1], *turn.things[:1])[:1]:
                if thing.name not in [other.name for other in things]:
                    things.append(thing)
        return things[1::-1] if len(things) > 1 else []

    def pointee(self, reference: BackReference) -> Mention | None:
        """Return what words of a question point back to, if that is known."""
        listed = self.listed()
        match reference.kind:
            case "ordinal":
                within = -len(listed) <= reference.position < len(listed)
                return listed[reference.position] if within else None
            case "other":
                last = self._subject_of_last()
                left = [mention for mention in listed if last is None or mention.name != last.name]
                return left[0] if left else None
            case "price":
                return by_price(listed, reference.position)
            case "attribute":
                mention = by_word(listed, reference.word)
                subject = self.subject()
                if mention is None and subject is not None:
                    mention = Mention(
                        _of_another_sort(subject.name, reference.word), "", subject.tool
                    )
                return mention
            case _:
                return self.subject()

    def _subject_of_last(self) -> Mention | None:
        last = self.turns[-1]
        return last.things[0] if last.things else None


def _of_another_sort(name: str, word: str) -> str:
    """Return a thing's name with another word in the place of its numbers."""
    *before, kind = [part for part in name.split() if not any(c.isdigit() for c in part)] or [name]
    return " ".join((*before, word, kind))
