"""Plans for questions that depend on earlier turns.

A plan cannot refer to history, so the plan of a follow-up has literals for what the question omits.
There are two methods:

- A question with an anaphor ("and its warranty?") is planned as if the entity were on the user's
  open page. Then steps that find the entity by name replace the page's fields.
- A question that only names another entity ("and the kite?") gets the last plan, in which the new
  entity replaces the old one.

The plan of an elliptical question has a literal with the completed question, not ``question``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from casewright.errors import InputError
from casewright.planner.history import back_references as back
from casewright.planner.history.mentions import Mention
from casewright.planner.history.rebinding import Rebinding, concatenated
from casewright.planner.history.turns import ConversationEntities, PlannedTurn, planned_turn
from casewright.planner.plan import Literal, Plan, QuestionRef, Step
from casewright.planner.request import PlanRequest
from casewright.planner.reuse import PlanSource, ScoredPlan, is_valid, valid_plans
from casewright.planner.spans import WORD_RUNS, is_span, normalized

#: Maximum number of earlier turns that are read.
MAX_TURNS = 4
#: Maximum number of characters of a literal in which the last and the new question are joined.
MAX_TOPIC_CHARACTERS = 300
#: Maximum number of words of a follow-up; a longer question counts as complete.
MAX_FOLLOW_UP_WORDS = 16
#: Value of the page's fields if a question is planned as if its entity were on the page.
PLACEHOLDER = "it"
#: Words that are not part of a name.
_NON_NAME_WORDS = frozenset(
    re.split(
        " ",
        "it its they them their this that these those one ones mine the a an my is are was "
        "of for and to in on me first second third last other",
    )
)


class HistoryReuse:
    """Source of plans for follow-ups; ``source`` plans questions without their history."""

    def __init__(self, source: PlanSource) -> None:
        self._source = source

    def scored_plans(self, request: PlanRequest) -> Iterator[ScoredPlan]:
        """Yield plans for a request, the most probable first; plans of follow-ups have no score."""
        if request.history:
            rebinding = Rebinding(request.toolbox)
            turns = self._turns(request, rebinding) if rebinding.page_fields else []
            if turns:
                for plan, _ in _FollowUp(self._source, request, turns, rebinding).plans():
                    yield ScoredPlan(plan, because="it follows up the plan of an earlier turn")
        yield from self._source.scored_plans(request)

    def _turns(self, request: PlanRequest, rebinding: Rebinding) -> list[PlannedTurn]:
        """Return the turns of the history with their plans; turns without a plan are left out."""
        turns: list[PlannedTurn] = []
        for turn in request.history[-MAX_TURNS:]:
            try:
                turn_request = replace(request, question=turn["question"], history=())
            except InputError:
                # Earlier questions are unchecked; a turn with an invalid question is skipped.
                continue
            follow_up = _FollowUp(self._source, turn_request, turns, rebinding) if turns else None
            plans = follow_up.plans() if follow_up else iter(())
            pair = next((pair for pair in plans if is_valid(pair[0], turn_request)), None)
            if pair is None and (scored := next(valid_plans(self._source, turn_request), None)):
                pair = scored.plan, turn_request.question
            if pair is not None:
                plan, question = pair
                turns.append(planned_turn(question, turn["answer"], plan, rebinding))
        return turns


class _FollowUp:
    """Source of plans for one question, given the earlier turns."""

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
        self._last_turn = self._conversation.last_turn
        self._rebinding = rebinding
        self._text = back.without_discourse_markers(request.question)
        fields = rebinding.page_fields
        # A context in which the entity to which the question refers is on the open page.
        self._page_context = dict.fromkeys(sorted(fields), PLACEHOLDER)
        self._has_page = any(request.context.get(field) is not None for field in fields)
        self._plan_without_history = next(self._plans_for(self._text), None)
        self._references = [
            reference
            for reference in back.back_references(self._text)
            if not self._has_antecedent(reference)
        ]

    def plans(self) -> Iterator[tuple[Plan, str]]:
        """Yield plans that use the history, each with the completed question."""
        if len(_words(self._text)) > MAX_FOLLOW_UP_WORDS:
            return
        yield from self._plans_with_new_subject()
        yield from self._plans_with_known_noun()
        yield from self._plans_about_referents()
        if self._is_about_page():
            return
        if not self._references:
            yield from self._plans_with_full_names()
        if self._plan_without_history is not None and _has_no_arguments(self._plan_without_history):
            # Few plan cases begin with a word such as "and", so the question is planned without it.
            text = back.without_conjunction(self._text)
            for plan in self._plans_for(text) if text != self._request.question else ():
                yield plan, text

    def _plans_with_new_subject(self) -> Iterator[tuple[Plan, str]]:
        """Yield plans for the last question, but about another entity ("and the kite?")."""
        new_subject = back.new_subject(self._text)
        if new_subject is None:
            return
        phrase, is_correction = new_subject
        last_turn, rebinding = self._last_turn, self._rebinding
        references = back.back_references(phrase)
        if back.refers_to_page(phrase):
            page_plan, question = rebinding.bound_to_page(last_turn.plan), last_turn.question
            if self._has_page and page_plan is not None:
                yield rebinding.with_question(page_plan, question), question
            return
        is_indefinite = phrase.split()[0].casefold() in ("something", "anything")
        if is_indefinite or back.of_kinds(references, "pronoun", "several"):
            return
        if self._last_turn_is_about_topic():
            yield self._topic_plan()
            return
        referents = (self._conversation.referent(reference) for reference in references)
        referent = next(filter(None, referents), None)
        subject = back.bare_subject(phrase)
        name = referent.name if referent else self._full_name(subject, is_correction)
        if name is None:
            return
        question = _with_name_replaced(last_turn, name)
        if last_turn.plan_entities:
            steps = enumerate(last_turn.plan.steps)
            search_index = [index for index, step in steps if step.tool in rebinding.finders][-1]
            plan = rebinding.with_names(last_turn.plan, {search_index: name})
        elif not rebinding.uses_page(last_turn.plan):
            return
        else:
            entity = Mention(name, tool=next(iter(rebinding.finders)))
            plan = rebinding.bound_to_entities(last_turn.plan, [entity])
        if back.compares_to_last(self._text):
            plan = concatenated(last_turn.plan, plan)
        yield rebinding.with_question(plan, question), question

    def _full_name(self, phrase: str, is_correction: bool) -> str | None:
        """Return the name in a phrase, if any; the last entity's name completes a partial name."""
        ends_with_one = phrase.casefold().endswith((" one", " ones"))
        name_part = phrase.rsplit(" ", 1)[0] if ends_with_one else phrase
        last_words = next((e.name.split() for e in self._last_turn.plan_entities[-1:]), [])
        is_partial = ends_with_one or (len(name_part.split()) == 1 and _is_name(name_part))
        if is_partial and _is_name("".join(last_words)) and len(last_words) > 1:
            first_words = last_words[:-1] if is_correction and len(last_words) > 2 else last_words
            return " ".join([*first_words, name_part])
        if ends_with_one:
            return f"{name_part} {' '.join(last_words)}" if last_words else None
        if _is_name(phrase) or is_correction:
            return phrase
        # "The price" is a part of the subject. A phrase is a name only if the plan searches for it.
        plan = next(self._plans_for(back.without_conjunction(self._text)), None)
        for step in plan.steps if plan else ():
            name = self._rebinding.searched_name(step)
            if isinstance(name, Literal) and is_span(str(name.value), phrase):
                return phrase
        return None

    def _plans_with_known_noun(self) -> Iterator[tuple[Plan, str]]:
        """Yield plans that repeat the last search with a changed noun phrase ("a lighter one")."""
        if self._references and not back.of_kinds(self._references, "attribute"):
            return
        turns = reversed(self._conversation.turns)
        noun = next((turn.plan_entities[-1].name for turn in turns if turn.plan_entities), None)
        question = back.with_noun(self._text, noun) if noun else None
        if question is not None:
            for plan in self._plans_for(question):
                if self._rebinding.ends_with_search(plan) and len(plan.steps) == 1:
                    yield plan, question

    def _plans_about_referents(self) -> Iterator[tuple[Plan, str]]:
        """Yield plans about the entities to which the question refers."""
        selections = back.of_kinds(self._references, "ordinal", "other", "price", "attribute")
        entities: list[Mention] = []
        text = self._text
        if back.of_kinds(self._references, "several"):
            if self._has_page and self._rebinding.uses_page(self._last_turn.plan):
                yield from self._plans_about_page_and_entity(text)
            entities = self._conversation.two_referents()
        elif selections:
            # A pronoun after words that select an entity ("the last one") refers to this entity.
            for reference in self._references:
                if reference.start > selections[-1].start:
                    break
                referent = self._conversation.referent(reference)
                if referent is not None and referent.name not in [e.name for e in entities]:
                    entities.append(referent)
            if len(selections) == 1:
                text = f"{text[: selections[0].start]}it{text[selections[0].end :]}"
        elif back.of_kinds(self._references, "pronoun"):
            if self._is_about_page():
                return
            subject = self._conversation.subject()
            if self._last_turn_is_about_topic() and self._continues_topic():
                page_plan = next(self._plans_for(text, self._page_context), None)
                if subject is None or (page_plan is not None and self._only_passes_text(page_plan)):
                    yield self._topic_plan()
                    return
            entities = [subject] if subject is not None else []
        if entities:
            yield from self._plans_about_entities(entities, text, refers_back=True)

    def _plans_about_entities(
        self, entities: Sequence[Mention], text: str, *, refers_back: bool
    ) -> Iterator[tuple[Plan, str]]:
        """Yield the plan of a question about the entities, with steps that find them by name.

        If the question does not refer back, only the most probable plan is tried.
        """
        question = f"{self._text} ({', '.join(entity.name for entity in entities)})"
        plans = list(self._plans_for(text, self._page_context))
        if back.has_conjunction(text) and not any(map(self._rebinding.uses_page, plans[:1])):
            plans = list(self._plans_for(back.without_conjunction(text), self._page_context))
        if plans:
            named_plan = self._named_plan(plans[0], entities[0])
            if named_plan is not None:
                yield named_plan, question
                return
            if self._only_passes_text(plans[0]) and len(entities) == 1:
                # The question is not about the entity, but for example about a policy.
                return
        for plan in plans if refers_back else plans[:1]:
            if self._rebinding.uses_page(plan):
                yield self._rebinding.bound_to_entities(plan, entities), question
                return

    def _plans_about_page_and_entity(self, text: str) -> Iterator[tuple[Plan, str]]:
        """Yield plans about both the entity on the page and the last other entity."""
        page_names = [entity.name for entity in self._last_turn.answer_entities[:1]]
        entities = [
            entity
            for turn in self._conversation.turns[:-1]
            for entity in turn.subjects
            if entity.name not in page_names
        ]
        plan = next(self._plans_for(text), None)
        if entities and plan is not None and self._rebinding.uses_page(plan):
            yield concatenated(plan, self._rebinding.bound_to_entities(plan, entities[-1:])), text

    def _named_plan(self, plan: Plan, entity: Mention) -> Plan | None:
        """Return the plan with searches for the entity instead of "it"; ``None`` without "it"."""
        name_by_index = {}
        for index, step in enumerate(plan.steps):
            value = self._rebinding.searched_name(step)
            # Another tool might not find the entity; "mine" asks for a tool for the user's items.
            if entity.tool not in ("", step.tool) and "mine" not in _words(self._text):
                continue
            if isinstance(value, QuestionRef) or (
                isinstance(value, Literal) and _names_nothing(str(value.value))
            ):
                name_by_index[index] = entity.name
        return self._rebinding.with_names(plan, name_by_index) if name_by_index else None

    def _plans_with_full_names(self) -> Iterator[tuple[Plan, str]]:
        """Yield plans with full names of earlier entities, or else plans about the last subject."""
        text = back.without_conjunction(self._text)
        plan = next(self._plans_for(text), None)
        if plan is None:
            return
        entity_by_name = {
            entity.name: entity
            for turn in self._conversation.turns
            for entity in (*turn.answer_entities, *turn.plan_entities)
        }
        name_by_index = {}
        for index, step in enumerate(plan.steps):
            value = self._rebinding.searched_name(step)
            if isinstance(value, Literal):
                words = set(_words(str(value.value)))
                full_names = [
                    entity.name
                    for entity in entity_by_name.values()
                    if entity.tool == step.tool and words < set(_words(entity.name))
                ]
                is_last_step = index == len(plan.steps) - 1
                if full_names and not is_last_step:
                    name_by_index[index] = full_names[-1]
        if name_by_index:
            yield self._rebinding.with_names(plan, name_by_index), text
        elif _has_no_arguments(plan):
            subject = self._conversation.subject()
            asks_about_part = back.begins_like_question(text) and back.has_definite_noun(text)
            if subject is not None and asks_about_part:
                yield from self._plans_about_entities([subject], self._text, refers_back=False)
            elif back.has_conjunction(self._text) and self._last_turn_is_about_topic():
                yield self._topic_plan()

    def _last_turn_is_about_topic(self) -> bool:
        """Return True if the last turn is not about an entity, but for example about a policy."""
        turn = self._last_turn
        is_about_entity = bool(turn.plan_entities or turn.answer_entities)
        return not is_about_entity and self._only_passes_text(turn.plan)

    def _continues_topic(self) -> bool:
        """Return True if the question names no entity and may continue the last turn's topic."""
        if self._plan_without_history is None:
            return True
        if _has_no_arguments(self._plan_without_history) and back.begins_like_question(self._text):
            return True
        return self._only_passes_text(self._plan_without_history)

    def _only_passes_text(self, plan: Plan) -> bool:
        """Return True if a plan only passes a text to tools that find no entities."""
        return all(
            step.tool not in self._rebinding.finders
            and len(step.arguments) > 0
            and all(isinstance(value, (QuestionRef, Literal)) for _, value in step.arguments)
            for step in plan.steps
        )

    def _topic_plan(self) -> tuple[Plan, str]:
        """Return a plan that passes both questions, as one text, to the last tool; and the text."""
        topic = f"{self._last_turn.question} {self._text}"[-MAX_TOPIC_CHARACTERS:]
        step = self._last_turn.plan.steps[-1]
        step = Step(step.tool, tuple((name, QuestionRef()) for name, _ in step.arguments))
        return self._rebinding.with_question(Plan((step,)), topic), topic

    def _plans_for(self, text: str, context: Mapping[str, Any] | None = None) -> Iterator[Plan]:
        """Yield valid plans for a text, without history; by default with the request's context."""
        context = self._request.context if context is None else context
        try:
            request = replace(self._request, question=text, context=context, history=())
        except InputError:
            return
        yield from (scored.plan for scored in valid_plans(self._source, request))

    def _is_about_page(self) -> bool:
        plan = self._plan_without_history if self._has_page else None
        return plan is not None and self._rebinding.uses_page(plan)

    def _has_antecedent(self, reference: back.BackReference) -> bool:
        """Return True if the question itself names the entity to which a reference points."""
        text_before = self._text[: reference.start]
        steps = self._plan_without_history.steps if self._plan_without_history else ()
        values = map(self._rebinding.searched_name, steps)
        names = [str(value.value) for value in values if isinstance(value, Literal)]
        names = [name for name in names if not _names_nothing(name)]
        if reference.kind == "several":
            return len(names) > 1
        return reference.kind == "pronoun" and any(is_span(name, text_before) for name in names)


def _with_name_replaced(turn: PlannedTurn, name: str) -> str:
    """Return the question of a turn with ``name`` instead of the name of the turn's entity."""
    for entity in turn.plan_entities:
        start = turn.question.casefold().find(entity.name.casefold())
        if start >= 0:
            return turn.question[:start] + name + turn.question[start + len(entity.name) :]
    return turn.question


def _has_no_arguments(plan: Plan) -> bool:
    return not any(step.arguments for step in plan.steps)


def _words(text: str) -> list[str]:
    return [run[0] for run in WORD_RUNS.finditer(normalized(text))]


def _names_nothing(name: str) -> bool:
    """Return True if no word can be part of a name, as in "the last one"."""
    return all(word in _NON_NAME_WORDS for word in _words(name))


def _is_name(phrase: str) -> bool:
    """Return True if a phrase has a capital letter or a digit."""
    return any(c.isupper() or c.isdigit() for c in phrase)
