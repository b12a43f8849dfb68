"""Plans for questions that depend on earlier turns.

A plan cannot refer to history, so the plan of a follow-up has what the question omits as literals.
There are two methods, and neither writes a new question:

- A question with an anaphor ("and its warranty?") is planned as if the entity were on the open
  page, as in plan cases; steps that find the entity by name then replace the page's fields.
- A question that only names another entity ("and the kite?") gets the last plan, bound to it.

``question`` in a plan is the user's own. If it is incomplete, the plan has a literal instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from casewright.errors import InputError
from casewright.planner.history import back_references as back
from casewright.planner.history.mentions import Mention
from casewright.planner.history.rebinding import Rebinding, joined
from casewright.planner.history.turns import ConversationEntities, PlannedTurn, planned_turn
from casewright.planner.plan import Literal, Plan, QuestionRef, Step
from casewright.planner.request import PlanRequest
from casewright.planner.reuse import PlanSource, ScoredPlan, valid, valid_plans
from casewright.planner.spans import RUNS, is_span, normalized

#: Maximal number of earlier turns that are read.
TURNS = 4
#: Maximal characters of a topic in a literal.
TOPIC = 300
#: Maximal words of a follow-up: a longer question is complete.
LONGEST = 16
#: Placeholder of the entity on a hypothetical page.
SUPPOSED = "it"
#: Words that identify nothing in a name.
_EMPTY = frozenset(
    re.split(
        " ",
        "it its they them their this that these those one ones mine the a an my is are was "
        "of for and to in on me first second third last other",
    )
)


class HistoryReuse:
    """Plans for follow-ups, by a ``PlanSource`` for single questions."""

    def __init__(self, source: PlanSource) -> None:
        self._source = source

    def scored_plans(self, request: PlanRequest) -> Iterator[ScoredPlan]:
        """Yield plans for a request, the likeliest first; a follow-up's have no confidence."""
        if request.history:
            rebinding = Rebinding(request.toolbox)
            turns = self._turns(request, rebinding) if rebinding.page_fields else []
            if turns:
                for plan, _ in _FollowUp(self._source, request, turns, rebinding).plans():
                    yield ScoredPlan(plan, because="it follows up the plan of an earlier turn")
        yield from self._source.scored_plans(request)

    def _turns(self, request: PlanRequest, rebinding: Rebinding) -> list[PlannedTurn]:
        turns: list[PlannedTurn] = []
        for turn in request.history[-TURNS:]:
            try:
                alone = replace(request, question=turn["question"], history=())
            except InputError:
                # Earlier questions are unchecked; a turn with an invalid one is skipped.
                continue
            plans = _FollowUp(self._source, alone, turns, rebinding).plans() if turns else iter(())
            follow_up = next(((plan, text) for plan, text in plans if valid(plan, alone)), None)
            scored = next(valid_plans(self._source, alone), None) if follow_up is None else None
            if scored is not None:
                follow_up = scored.plan, alone.question
            if follow_up is not None:
                plan, question = follow_up
                turns.append(planned_turn(question, turn["answer"], plan, rebinding))
        return turns


class _FollowUp:
    """Question with the earlier turns."""

    def __init__(
        self,
        source: PlanSource,
        request: PlanRequest,
        turns: Sequence[PlannedTurn],
        rebinding: Rebinding,
    ) -> None:
        self._source = source
        self._request = request
        self._conversation = ConversationEntities(turns)
        self._last = self._conversation.last_turn
        self._rebinding = rebinding
        self._text = back.core(request.question)
        fields = rebinding.page_fields
        # A hypothetical page with the entity to which the question refers.
        self._supposed = dict.fromkeys(sorted(fields), SUPPOSED)
        self._has_page = any(request.context.get(field) is not None for field in fields)
        self._alone = next(self._readings(self._text), None)
        self._references = [
            reference
            for reference in back.back_references(self._text)
            if not self._has_antecedent(reference)
        ]

    def plans(self) -> Iterator[tuple[Plan, str]]:
        """Yield plans that use the history, each with the completed question."""
        if len(_words(self._text)) > LONGEST:
            return
        yield from self._with_new_subject()
        yield from self._of_the_same_kind()
        yield from self._pointing_back()
        if self._has_page and self._alone_uses_page():
            return
        if not self._references:
            yield from self._with_full_names()
        if self._alone is not None and _looks_up_nothing(self._alone):
            # Few plan cases contain words such as "and" at the beginning.
            text = back.without_opener(self._text)
            for plan in self._readings(text) if text != self._request.question else ():
                yield plan, text

    def _with_new_subject(self) -> Iterator[tuple[Plan, str]]:
        """Yield plans for the last question about another entity."""
        subject = back.new_subject(self._text)
        if subject is None:
            return
        phrase, corrects = subject
        last, rebinding = self._last, self._rebinding
        references = back.back_references(phrase)
        if back.means_page(phrase):
            page_plan = rebinding.bound_to_page(last.plan)
            if self._has_page and page_plan is not None:
                yield rebinding.with_question(page_plan, last.question), last.question
            return
        if back.of_kinds(references, "pronoun", "several"):
            return
        if phrase.split()[0].casefold() in ("something", "anything"):
            return
        if self._is_topic(last):
            yield self._about_topic(last)
            return
        referents = (self._conversation.referent(reference) for reference in references)
        mention = next((referent for referent in referents if referent is not None), None)
        name = mention.name if mention else self._full_name(back.bare_subject(phrase), corrects)
        if name is None:
            return
        question = _replaced(last, name)
        if last.entities:
            steps = enumerate(last.plan.steps)
            finder = [index for index, step in steps if step.tool in rebinding.finders][-1]
            plan = rebinding.with_names(last.plan, {finder: name})
        elif not rebinding.uses_page(last.plan):
            return
        else:
            entity = Mention(name, "", next(iter(rebinding.finders)))
            plan = rebinding.bound_to_entities(last.plan, [entity])
        if back.compares(self._text):
            plan = joined(last.plan, plan)
        yield rebinding.with_question(plan, question), question

    def _full_name(self, phrase: str, corrects: bool) -> str | None:
        """Return the full name of the entity in a phrase, which may be a part of the last name."""
        says_one = phrase.casefold().endswith((" one", " ones"))
        short = phrase.rsplit(" ", 1)[0] if says_one else phrase
        before = self._last.entities[-1].name.split() if self._last.entities else []
        part = says_one or (len(short.split()) == 1 and _is_name(short))
        if part and _is_name("".join(before)) and len(before) > 1:
            return " ".join([*(before[:-1] if corrects and len(before) > 2 else before), short])
        if says_one:
            return f"{short} {' '.join(before)}" if before else None
        if _is_name(phrase) or corrects:
            return phrase
        # A part of the subject ("the price") is not another entity.
        alone = next(self._readings(back.without_opener(self._text)), None)
        for step in alone.steps if alone else ():
            name = self._rebinding.name_in(step)
            if isinstance(name, Literal) and is_span(str(name.value), phrase):
                return phrase
        return None

    def _of_the_same_kind(self) -> Iterator[tuple[Plan, str]]:
        """Yield plans that search for another entity of a kind."""
        if self._references and not back.of_kinds(self._references, "attribute"):
            return
        kinds = (
            turn.entities[-1].name for turn in reversed(self._conversation.turns) if turn.entities
        )
        kind = next(kinds, None)
        question = back.refined(self._text, kind) if kind else None
        if question is not None:
            for plan in self._readings(question):
                if self._rebinding.searches(plan) and len(plan.steps) == 1:
                    yield plan, question

    def _pointing_back(self) -> Iterator[tuple[Plan, str]]:
        others = back.of_kinds(self._references, "ordinal", "other", "price", "attribute")
        entities: list[Mention] = []
        text = self._text
        if back.of_kinds(self._references, "several"):
            if self._has_page and self._rebinding.uses_page(self._last.plan):
                yield from self._beside_page(text)
            entities = self._conversation.last_two()
        elif others:
            # A pronoun after "the last one" refers to it.
            for reference in self._references:
                if reference.start > others[-1].start:
                    break
                mention = self._conversation.referent(reference)
                if mention is not None and mention.name not in [entity.name for entity in entities]:
                    entities.append(mention)
            if len(others) == 1:
                text = f"{text[: others[0].start]}it{text[others[0].end :]}"
        elif back.of_kinds(self._references, "pronoun"):
            if self._has_page and self._alone_uses_page():
                return
            subject = self._conversation.subject()
            if self._is_topic(self._last) and self._continues_topic():
                first = next(self._readings(text, self._supposed), None)
                if subject is None or (first is not None and self._only_asks(first)):
                    yield self._about_topic(self._last)
                    return
            entities = [subject] if subject is not None else []
        if entities:
            yield from self._about(entities, text, sure=True)

    def _about(
        self, entities: Sequence[Mention], text: str, *, sure: bool
    ) -> Iterator[tuple[Plan, str]]:
        """Yield plans as if the entities were on the page, with steps that find them by name."""
        question = f"{self._text} ({', '.join(entity.name for entity in entities)})"
        plans = list(self._readings(text, self._supposed))
        if back.has_opener(text) and not any(map(self._rebinding.uses_page, plans[:1])):
            plans = list(self._readings(back.without_opener(text), self._supposed))
        if plans:
            named = self._with_name(plans[0], entities[0])
            if named is not None:
                yield named, question
                return
            if self._only_asks(plans[0]) and len(entities) == 1:
                # The question is not about the entity, but for example about a policy.
                return
        for plan in plans if sure else plans[:1]:
            if self._rebinding.uses_page(plan):
                yield self._rebinding.bound_to_entities(plan, entities), question
                return

    def _beside_page(self, text: str) -> Iterator[tuple[Plan, str]]:
        """Yield plans about both the entity on the page and the last entity."""
        page = [entity.name for entity in self._last.in_answer[:1]]
        before = [
            entity
            for turn in self._conversation.turns[:-1]
            for entity in (*turn.in_answer[:1], *turn.entities[:1])
            if entity.name not in page
        ]
        plan = next(self._readings(text), None)
        if before and plan is not None and self._rebinding.uses_page(plan):
            yield joined(plan, self._rebinding.bound_to_entities(plan, before[-1:])), text

    def _with_name(self, plan: Plan, entity: Mention) -> Plan | None:
        """Return the plan whose searches have the entity's name instead of "it", or ``None``."""
        names = {}
        for index, step in enumerate(plan.steps):
            value = self._rebinding.name_in(step)
            # The user may have seen an entity in the catalogue without an order.
            if entity.tool not in ("", step.tool) and "mine" not in _words(self._text):
                continue
            if isinstance(value, QuestionRef) or (
                isinstance(value, Literal) and _names_nothing(str(value.value))
            ):
                names[index] = entity.name
        return self._rebinding.with_names(plan, names) if names else None

    def _with_full_names(self) -> Iterator[tuple[Plan, str]]:
        """Yield plans that search for the full name of an entity named partly or not at all."""
        text = back.without_opener(self._text)
        alone = next(self._readings(text), None)
        if alone is None:
            return
        turns = self._conversation.turns
        known = {
            entity.name: entity for turn in turns for entity in (*turn.in_answer, *turn.entities)
        }
        names = {}
        for index, step in enumerate(alone.steps):
            value = self._rebinding.name_in(step)
            if isinstance(value, Literal):
                words = set(_words(str(value.value)))
                full = [
                    entity.name
                    for entity in known.values()
                    if entity.tool == step.tool and words < set(_words(entity.name))
                ]
                if full and len(alone.steps) > index + 1:
                    names[index] = full[-1]
        if names:
            yield self._rebinding.with_names(alone, names), text
        elif _looks_up_nothing(alone):
            subject = self._conversation.subject()
            if subject is not None and back.asks(text) and back.names_a_part(text):
                yield from self._about([subject], self._text, sure=False)
            elif back.has_opener(self._text) and self._is_topic(self._last):
                yield self._about_topic(self._last)

    def _is_topic(self, turn: PlannedTurn) -> bool:
        return not turn.entities and not turn.in_answer and self._only_asks(turn.plan)

    def _continues_topic(self) -> bool:
        if self._alone is None:
            return True
        nothing = _looks_up_nothing(self._alone) and back.asks(self._text)
        return nothing or self._only_asks(self._alone)

    def _only_asks(self, plan: Plan) -> bool:
        """Return True if a plan only passes a text to tools that find no entities."""
        return all(
            step.tool not in self._rebinding.finders
            and len(step.arguments) > 0
            and all(isinstance(value, (QuestionRef, Literal)) for _, value in step.arguments)
            for step in plan.steps
        )

    def _about_topic(self, last: PlannedTurn) -> tuple[Plan, str]:
        """Return a plan that calls the topic's tool with the topic before the question."""
        topic = f"{last.question} {self._text}"[-TOPIC:]
        step = last.plan.steps[-1]
        again = Step(step.tool, tuple((name, QuestionRef()) for name, _ in step.arguments))
        return self._rebinding.with_question(Plan((again,)), topic), topic

    def _readings(self, text: str, context: Mapping[str, Any] | None = None) -> Iterator[Plan]:
        """Yield valid plans for a text without history, by default in the request's context."""
        context = self._request.context if context is None else context
        try:
            request = replace(self._request, question=text, context=context, history=())
        except InputError:
            return
        yield from (scored.plan for scored in valid_plans(self._source, request))

    def _alone_uses_page(self) -> bool:
        return self._alone is not None and self._rebinding.uses_page(self._alone)

    def _has_antecedent(self, reference: back.BackReference) -> bool:
        """Return True if the question itself names the entity to which its words refer."""
        before = self._text[: reference.start]
        values = [
            self._rebinding.name_in(step) for step in (self._alone.steps if self._alone else ())
        ]
        names = [str(value.value) for value in values if isinstance(value, Literal)]
        names = [name for name in names if not _names_nothing(name)]
        if reference.kind == "several":
            return len(names) > 1
        return reference.kind == "pronoun" and any(is_span(name, before) for name in names)


def _replaced(last: PlannedTurn, name: str) -> str:
    """Return the last question with this name instead of that of its entity."""
    for entity in last.entities:
        start = last.question.casefold().find(entity.name.casefold())
        if start >= 0:
            return last.question[:start] + name + last.question[start + len(entity.name) :]
    return last.question


def _looks_up_nothing(plan: Plan) -> bool:
    return not any(step.arguments for step in plan.steps)


def _words(text: str) -> list[str]:
    return [run[0] for run in RUNS.finditer(normalized(text))]


def _names_nothing(name: str) -> bool:
    return all(word in _EMPTY for word in _words(name))


def _is_name(phrase: str) -> bool:
    return any(c.isupper() or c.isdigit() for c in phrase)
