"""Finds entities, in earlier turns, to which a question may refer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from casewright.planner.history.back_references import BackReference
from casewright.planner.history.mentions import (
    Mention,
    mention_by_price,
    mention_by_word,
    mentions_in,
)
from casewright.planner.history.rebinding import Rebinding
from casewright.planner.plan import Literal, Plan


@dataclass(frozen=True, slots=True)
class PlannedTurn:
    """Earlier turn with its plan.

    Attributes:
        question: The question; if it is elliptical, completed from earlier turns where possible.
        plan_entities: Entities for which the plan searches by name.
        answer_entities: Entities in the answer, if the plan ends with a search or uses the page.
    """

    question: str
    plan: Plan
    plan_entities: tuple[Mention, ...]
    answer_entities: tuple[Mention, ...]

    @property
    def subjects(self) -> tuple[Mention, ...]:
        """The first entity of the answer and the first entity of the plan, if any."""
        return (*self.answer_entities[:1], *self.plan_entities[:1])


def planned_turn(question: str, answer: str, plan: Plan, rebinding: Rebinding) -> PlannedTurn:
    """Return a turn with its entities; ``rebinding`` says which steps search for a name."""
    plan_entities = []
    for step in plan.steps:
        name = rebinding.searched_name(step)
        if isinstance(name, Literal) and isinstance(name.value, str):
            plan_entities.append(Mention(name.value, tool=step.tool))
    answer_entities: list[Mention] = []
    if rebinding.ends_with_search(plan) or rebinding.uses_page(plan):
        last_tool = plan.steps[-1].tool
        # For an answer about a page, the right finder is unknown; the first is taken.
        finder = last_tool if last_tool in rebinding.finders else next(iter(rebinding.finders))
        answer_entities = mentions_in(answer, finder)
    return PlannedTurn(question, plan, tuple(plan_entities), tuple(answer_entities))


class ConversationEntities:
    """Finds entities to which a question refers, in ``turns``, the earlier turns in order."""

    def __init__(self, turns: Sequence[PlannedTurn]) -> None:
        self.turns = turns
        self.last_turn = turns[-1]

    def subject(self) -> Mention | None:
        """Return the subject of the last turn that has a subject."""
        entities = (entity for turn in reversed(self.turns) for entity in turn.subjects)
        return next(entities, None)

    def last_list(self) -> Sequence[Mention]:
        """Return the last list (search results or compared entities), or else the last entity."""
        for turn in reversed(self.turns):
            for candidates in (turn.plan_entities, turn.answer_entities):
                if len(candidates) > 1:
                    return candidates
        lists = (turn.answer_entities for turn in reversed(self.turns))
        return next(filter(None, lists), ())

    def two_referents(self) -> list[Mention]:
        """Return the first two entities of the last turn's list, or else the last two subjects."""
        if len(self.last_turn.plan_entities) > 1 or len(self.last_turn.answer_entities) > 1:
            return list(self.last_list()[:2])
        entities: list[Mention] = []
        for turn in reversed(self.turns):
            for entity in turn.subjects[:1]:
                if entity.name not in [known.name for known in entities]:
                    entities.append(entity)
        # The entity of the earlier turn comes first.
        return entities[1::-1] if len(entities) > 1 else []

    def referent(self, reference: BackReference) -> Mention | None:
        """Return the entity to which a reference points, if the entity is known."""
        entities, subject = self.last_list(), self.subject()
        match reference.kind:
            case "ordinal":
                exists = -len(entities) <= reference.position < len(entities)
                return entities[reference.position] if exists else None
            case "other":
                last_names = [entity.name for entity in self.last_turn.plan_entities[:1]]
                return next((entity for entity in entities if entity.name not in last_names), None)
            case "price":
                return mention_by_price(entities, reference.position)
            case "attribute":
                entity = mention_by_word(entities, reference.word)
                if entity is None and subject is not None:
                    return Mention(_variant(subject.name, reference.word), tool=subject.tool)
                return entity
            case _:
                return subject


def _variant(name: str, attribute: str) -> str:
    """Return the name of a variant: for "Kestrel 12 tent" and "red" it is "Kestrel red tent"."""
    words = [word for word in name.split() if not any(c.isdigit() for c in word)] or [name]
    return " ".join((*words[:-1], attribute, words[-1]))
