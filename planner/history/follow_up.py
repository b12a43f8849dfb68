"""Plans for questions that depend on earlier turns.

A plan cannot refer to history, so the plan of a follow-up has what the question omits as literals.
There are two methods, and neither writes a new question:

- A question with an anaphor ("and its warranty?") is planned as if the thing were on the open page,
  as in plan cases; steps that find the thing by name then replace the page's fields.
- A question that only names another thing ("and the kite?") gets the last plan, bound to it.

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
from casewright.planner.history.turns import PlannedTurn, Talk, planned_turn
from casewright.planner.plan import Literal, Plan, QuestionRef, Step
from casewright.planner.request import PlanRequest
from casewright.planner.reuse import Reading, Reuse, valid, valid_readings
from casewright.planner.spans import RUNS, is_span, normalized

#: Maximal number of earlier turns that are read.
TURNS = 4
#: Maximal characters of a topic in a literal.
TOPIC = 300
#: Maximal words of a follow-up: a longer question is complete.
LONGEST = 16
#: Placeholder of the thing on a hypothetical page.
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
    """Plans for follow-ups, by a ``Reuse`` for single questions."""

    def __init__(self, reuse: Reuse) -> None:
        self._reuse = reuse

    def readings(self, request: PlanRequest) -> Iterator[Reading]:
        """Yield readings of a request, the most probable first; a follow-up's lack confidence."""
        if request.history:
            rebinding = Rebinding(request.toolbox)
            turns = self._turns(request, rebinding) if rebinding.page_fields else []
            if turns:
                for plan, _ in _FollowUp(self._reuse, request, turns, rebinding).plans():
                    yield Reading(plan, because="it follows up the plan of an earlier turn")
        yield from self._reuse.readings(request)

    def _turns(self, request: PlanRequest, rebinding: Rebinding) -> list[PlannedTurn]:
        turns: list[PlannedTurn] = []
        for turn in request.history[-TURNS:]:
            try:
                alone = replace(request, question=turn["question"], history=())
            except InputError:
                # Earlier questions are unchecked; a turn with an invalid one is skipped.
                continue
            plans = _FollowUp(self._reuse, alone, turns, rebinding).plans() if turns else iter(())
            follow_up = next(((plan, text) for plan, text in plans if valid(plan, alone)), None)
            reading = next(valid_readings(self._reuse, alone), None) if follow_up is None else None
            if reading is not None:
                follow_up = reading.plan, alone.question
            if follow_up is not None:
                plan, question = follow_up
                turns.append(planned_turn(question, turn["answer"], plan, rebinding))
        return turns


class _FollowUp:
    """Question with the earlier turns."""

    def __init__(
        self, reuse: Reuse, request: PlanRequest, turns: Sequence[PlannedTurn], rebinding: Rebinding
    ) -> None:
        self._reuse = reuse
        self._request = request
        self._talk = Talk(turns)
        self._last = self._talk.last
        self._rebinding = rebinding
        self._text = back.core(request.question)
        fields = rebinding.page_fields
        # A hypothetical page with the thing to which the question refers.
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
        """Yield plans for the last question about another thing."""
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
        pointees = (self._talk.pointee(reference) for reference in references)
        mention = next((pointee for pointee in pointees if pointee is not None), None)
        name = mention.name if mention else self._full_name(back.bare_subject(phrase), corrects)
        if name is None:
            return
        question = _replaced(last, name)
        if last.things:
            steps = enumerate(last.plan.steps)
            finder = [index for index, step in steps if step.tool in rebinding.finders][-1]
            plan = rebinding.with_names(last.plan, {finder: name})
        elif not rebinding.uses_page(last.plan):
            return
        else:
            thing = Mention(name, "", next(iter(rebinding.finders)))
            plan = rebinding.bound_to_things(last.plan, [thing])
        if back.compares(self._text):
            plan = joined(last.plan, plan)
        yield rebinding.with_question(plan, question), question

    def _full_name(self, phrase: str, corrects: bool) -> str | None:
        """Return the full name of the thing in a phrase, which may be a part of the last name."""
        says_one = phrase.casefold().endswith((" one", " ones"))
        short = phrase.rsplit(" ", 1)[0] if says_one else phrase
        before = self._last.things[-1].name.split() if self._last.things else []
        part = says_one or (len(short.split()) == 1 and _is_name(short))
        if part and _is_name("".join(before)) and len(before) > 1:
            return " ".join([*(before[:-1] if corrects and len(before) > 2 else before), short])
        if says_one:
            return f"{short} {' '.join(before)}" if before else None
        if _is_name(phrase) or corrects:
            return phrase
        # A part of the subject ("the price") is not another thing.
        alone = next(self._readings(back.without_opener(self._text)), None)
        for step in alone.steps if alone else ():
            name = self._rebinding.name_in(step)
            if isinstance(name, Literal) and is_span(str(name.value), phrase):
                return phrase
        return None

    def _of_the_same_kind(self) -> Iterator[tuple[Plan, str]]:
        """Yield plans that search for another thing of a kind."""
        if self._references and not back.of_kinds(self._references, "attribute"):
            return
        kinds = (turn.things[-1].name for turn in reversed(self._talk.turns) if turn.things)
        kind = next(kinds, None)
        question = back.refined(self._text, kind) if kind else None
        if question is not None:
            for plan in self._readings(question):
                if self._rebinding.searches(plan) and len(plan.steps) == 1:
                    yield plan, question

    def _pointing_back(self) -> Iterator[tuple[Plan, str]]:
        others = back.of_kinds(self._references, "ordinal", "other", "price", "attribute")
        things: list[Mention] = []
        text = self._text
        if back.of_kinds(self._references, "several"):
            if self._has_page and self._rebinding.uses_page(self._last.plan):
                yield from self._beside_page(text)
            things = self._talk.several()
        elif others:
            # A pronoun after "the last one" refers to it.
            for reference in self._references:
                if reference.start > others[-1].start:
                    break
                mention = self._talk.pointee(reference)
                if mention is not None and mention.name not in [thing.name for thing in things]:
                    things.append(mention)
            if len(others) == 1:
                text = f"{text[: others[0].start]}it{text[others[0].end :]}"
        elif back.of_kinds(self._references, "pronoun"):
            if self._has_page and self._alone_uses_page():
                return
            subject = self._talk.subject()
            if self._is_topic(self._last) and self._continues_topic():
                first = next(self._readings(text, self._supposed), None)
                if subject is None or (first is not None and self._only_asks(first)):
                    yield self._about_topic(self._last)
                    return
            things = [subject] if subject is not None else []
        if things:
            yield from self._about(things, text, sure=True)

    def _about(
        self, things: Sequence[Mention], text: str, *, sure: bool
    ) -> Iterator[tuple[Plan, str]]:
        """Yield plans made as if the things were on the page, with steps that find them by name."""
        question = f"{self._text} ({', '.join(thing.name for thing in things)})"
        plans = list(self._readings(text, self._supposed))
        if back.has_opener(text) and not any(map(self._rebinding.uses_page, plans[:1])):
            plans = list(self._readings(back.without_opener(text), self._supposed))
        if plans:
            named = self._with_name(plans[0], things[0])
            if named is not None:
                yield named, question
                return
            if self._only_asks(plans[0]) and len(things) == 1:
                # The question is not about the thing, but for example about a policy.
                return
        for plan in plans if sure else plans[:1]:
            if self._rebinding.uses_page(plan):
                yield self._rebinding.bound_to_things(plan, things), question
                return

    def _beside_page(self, text: str) -> Iterator[tuple[Plan, str]]:
        """Yield plans about both the thing on the page and the last thing."""
        page = [thing.name for thing in self._last.listed[:1]]
        before = [
            thing
            for turn in self._talk.turns[:-1]
            for thing in (*turn.listed[:1], *turn.things[:1])
            if thing.name not in page
        ]
        plan = next(self._readings(text), None)
        if before and plan is not None and self._rebinding.uses_page(plan):
            yield joined(plan, self._rebinding.bound_to_things(plan, before[-1:])), text

    def _with_name(self, plan: Plan, thing: Mention) -> Plan | None:
        """Return the plan whose searches have the thing's name instead of "it", or ``None``."""
        names = {}
        for index, step in enumerate(plan.steps):
            value = self._rebinding.name_in(step)
            # The user may have seen a thing in the catalogue without an order.
            if thing.tool not in ("", step.tool) and "mine" not in _words(self._text):
                continue
            if isinstance(value, QuestionRef) or (
                isinstance(value, Literal) and _names_nothing(str(value.value))
            ):
                names[index] = thing.name
        return self._rebinding.with_names(plan, names) if names else None

    def _with_full_names(self) -> Iterator[tuple[Plan, str]]:
        """Yield plans that search for the full name of a thing named partly or not at all."""
        text = back.without_opener(self._text)
        alone = next(self._readings(text), None)
        if alone is None:
            return
        turns = self._talk.turns
        known = {thing.name: thing for turn in turns for thing in (*turn.listed, *turn.things)}
        names = {}
        for index, step in enumerate(alone.steps):
            value = self._rebinding.name_in(step)
            if isinstance(value, Literal):
                words = set(_words(str(value.value)))
                full = [
                    thing.name
                    for thing in known.values()
                    if thing.tool == step.tool and words < set(_words(thing.name))
                ]
                if full and len(alone.steps) > index + 1:
                    names[index] = full[-1]
        if names:
            yield self._rebinding.with_names(alone, names), text
        elif _looks_up_nothing(alone):
            subject = self._talk.subject()
            if subject is not None and back.asks(text) and back.names_a_part(text):
                yield from self._about([subject], self._text, sure=False)
            elif back.has_opener(self._text) and self._is_topic(self._last):
                yield self._about_topic(self._last)

    def _is_topic(self, turn: PlannedTurn) -> bool:
        return not turn.things and not turn.listed and self._only_asks(turn.plan)

    def _continues_topic(self) -> bool:
        if self._alone is None:
            return True
        nothing = _looks_up_nothing(self._alone) and back.asks(self._text)
        return nothing or self._only_asks(self._alone)

    def _only_asks(self, plan: Plan) -> bool:
        """Return True if a plan only passes a text to tools that find no things."""
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
        yield from (reading.plan for reading in valid_readings(self._reuse, request))

    def _alone_uses_page(self) -> bool:
        return self._alone is not None and self._rebinding.uses_page(self._alone)

    def _has_antecedent(self, reference: back.BackReference) -> bool:
        """Return True if the question itself names the thing to which its words refer."""
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
    """Return the last question with this name instead of that of its thing."""
    for thing in last.things:
        start = last.question.casefold().find(thing.name.casefold())
        if start >= 0:
            return last.question[:start] + name + last.question[start + len(thing.name) :]
    return last.question


def _looks_up_nothing(plan: Plan) -> bool:
    return not any(step.arguments for step in plan.steps)


def _words(text: str) -> list[str]:
    return [run[0] for run in RUNS.finditer(normalized(text))]


def _names_nothing(name: str) -> bool:
    return all(word in _EMPTY for word in _words(name))


def _is_name(phrase: str) -> bool:
    return any(c.isupper() or c.isdigit() for c in phrase)
