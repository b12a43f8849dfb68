"""Plans for a question that leans on the turns before it.

A plan cannot refer to history, so what a follow-up leaves out stands in its plan as literals. Two
ways lead there, and neither writes a new question:

- A question that points back ("and its warranty?") is planned for as if what it points to were
  open on the page, which plan cases know; what the plan takes from the page is then found by name.
- A question that names another thing alone ("and the kite?") takes over the plan of the question
  before it, bound to that thing.

``question`` in a plan stays the user's own. Where that does not say what is asked, a literal does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from casewright.errors import InputError
from casewright.planner.history import back_references as back
from casewright.planner.history import rebinding
from casewright.planner.history.mentions import Mention
from casewright.planner.history.turns import Talk, Turn, searches
from casewright.planner.plan import Literal, Plan, QuestionRef, Step
from casewright.planner.request import PlanRequest
from casewright.planner.reuse import Reuse, valid_readings
from casewright.planner.spans import RUNS, is_span, normalized

#: Longest topic in a literal, in characters.
TOPIC = 300
#: Longest follow-up in words: who says more says what it is about.
LONGEST = 16
#: Stands for the thing on a page that is only supposed.
SUPPOSED = "it"


class FollowUp:
    """Question with the turns before it."""

    def __init__(self, reuse: Reuse, request: PlanRequest, turns: Sequence[Turn]) -> None:
        self._reuse = reuse
        self._request = request
        self._talk = Talk(turns)
        self._toolbox = request.toolbox
        self._by = rebinding.finders(request.toolbox)
        self._fields = rebinding.page_fields(request.toolbox)
        self._text = back.core(request.question)
        self._page = any(request.context.get(field) is not None for field in self._fields)
        self._alone = next(self._readings(self._text), None)
        self._found = [
            reference
            for reference in back.back_references(self._text)
            if not self._has_antecedent(reference)
        ]

    def plans(self) -> Iterator[tuple[Plan, str]]:
        """Yield plans that take history into account, each with what is asked in full."""
        if len(_words(self._text)) > LONGEST:
            return
        yield from self._moved()
        yield from self._refined()
        yield from self._pointed()
        if self._page and self._alone_is_of_page():
            return
        if not self._found:
            yield from self._named_again()
        if self._alone is not None and _looks_up_nothing(self._alone):
            # What only says that the talk goes on was in few plan cases.
            text = back.without_opener(self._text)
            for plan in self._readings(text) if text != self._request.question else ():
                yield plan, text

    # A new subject for the question before.

    def _moved(self) -> Iterator[tuple[Plan, str]]:
        """Yield plans that ask of another thing what was asked before."""
        subject = back.new_subject(self._text)
        if subject is None:
            return
        phrase, corrects = subject
        last = self._talk.last
        inside = back.back_references(phrase)
        if back.means_page(phrase):
            plan = rebinding.of_this_page(last.plan, self._fields, self._toolbox)
            if self._page and plan is not None:
                yield rebinding.with_question(plan, last.question, self._toolbox), last.question
            return
        if back.pointing(inside, "pronoun", "several"):
            return
        if phrase.split()[0].casefold() in ("something", "anything"):
            return
        if self._topic(last):
            yield from self._continued(last)
            return
        mention = next(
            (pointee for ref in inside if (pointee := self._talk.pointee(ref)) is not None), None
        )
        bare = back.bare_subject(phrase)
        name = mention.name if mention else self._full_name(bare, corrects)
        if name is None:
            return
        question = _replaced(last, name)
        if last.things:
            plan = self._with_last_name(last, name)
        elif not rebinding.of_page(last.plan, self._fields):
            return
        else:
            thing = Mention(name, "", next(iter(self._by)))
            plan = rebinding.found_instead(last.plan, [thing], self._fields, self._toolbox)
        if back.compares(self._text):
            plan = rebinding.joined(last.plan, plan)
        yield rebinding.with_question(plan, question, self._toolbox), question

    def _with_last_name(self, last: Turn, name: str) -> Plan:
        finders = [at for at, step in enumerate(last.plan.steps) if step.tool in self._by]
        return rebinding.with_names(last.plan, [(finders[-1], name)], self._toolbox)

    def _full_name(self, phrase: str, corrects: bool) -> str | None:
        """Return the name that a phrase gives, completed by the one before where it is a part."""
        last = self._talk.last
        says_one = phrase.casefold().endswith((" one", " ones"))
        short = phrase.rsplit(" ", 1)[0] if says_one else phrase
        before = last.things[-1].name.split() if last.things else []
        named = any(c.isupper() or c.isdigit() for c in "".join(before))
        part = says_one or (len(short.split()) == 1 and _is_name(short))
        if part and named and len(before) > 1:
            if corrects and len(before) > 2:
                before[-1] = short
            else:
                before.append(short)
            return " ".join(before)
        if says_one:
            return f"{short} {' '.join(before)}" if before else None
        if _is_name(phrase) or corrects:
            return phrase
        # A part of what was talked about ("the price") is no thing of its own.
        alone = next(self._readings(back.without_opener(self._text)), None)
        for step in alone.steps if alone else ():
            name = step.argument(self._by[step.tool]) if step.tool in self._by else None
            if isinstance(name, Literal) and is_span(str(name.value), phrase):
                return phrase
        return None

    # Another of the same kind.

    def _refined(self) -> Iterator[tuple[Plan, str]]:
        """Yield plans that search for another thing of a kind."""
        if self._found and not back.pointing(self._found, "attribute"):
            return
        kind = next(
            (turn.things[-1].name for turn in reversed(self._talk.turns) if turn.things), None
        )
        question = back.refined(self._text, kind) if kind else None
        if question is not None:
            for plan in self._readings(question):
                if searches(plan, self._by) and len(plan.steps) == 1:
                    yield plan, question

    # Words that point back.

    def _pointed(self) -> Iterator[tuple[Plan, str]]:
        several = back.pointing(self._found, "several")
        others = back.pointing(self._found, "ordinal", "other", "price", "attribute")
        pronouns = back.pointing(self._found, "pronoun")
        things: list[Mention] = []
        text = self._text
        if several:
            if self._page and rebinding.of_page(self._talk.last.plan, self._fields):
                yield from self._beside_page(text)
            things = self._talk.several()
        elif others:
            # A pronoun after "the last one" points to it.
            for reference in self._found:
                if reference.start > others[-1].start:
                    break
                mention = self._talk.pointee(reference)
                if mention is not None and mention.name not in [thing.name for thing in things]:
                    things.append(mention)
            if len(others) == 1:
                text = back.with_it(text, others[0])
        elif pronouns:
            if self._page and self._alone_is_of_page():
                return
            last = self._talk.last
            subject = self._talk.subject()
            if self._topic(last) and self._goes_on():
                first = next(self._supposed(text), None)
                if subject is None or (first is not None and self._only_asks(first)):
                    yield from self._continued(last)
                    return
            things = [subject] if subject is not None else []
        if not things:
            return
        yield from self._asked_of(things, text, sure=True)

    def _asked_of(
        self, things: Sequence[Mention], text: str, *, sure: bool
    ) -> Iterator[tuple[Plan, str]]:
        """Yield plans as if the things were on the page, which find them by name."""
        question = f"{self._text} ({', '.join(thing.name for thing in things)})"
        plans = list(self._supposed(text))
        if back.has_opener(text) and not any(
            rebinding.of_page(plan, self._fields) for plan in plans[:1]
        ):
            plans = list(self._supposed(back.without_opener(text)))
        for plan in plans[:1]:
            named = self._named(plan, things[0])
            if named is not None:
                yield named, question
                return
            if self._only_asks(plan) and len(things) == 1:
                # A policy, say: it is no question about the thing.
                return
        for plan in plans if sure else plans[:1]:
            if rebinding.of_page(plan, self._fields):
                yield (
                    rebinding.found_instead(plan, things, self._fields, self._toolbox),
                    question,
                )
                return

    def _beside_page(self, text: str) -> Iterator[tuple[Plan, str]]:
        """Ask of the page and of what was talked of before it."""
        here = self._talk.last.listed[:1]
        before = [
            thing
            for turn in self._talk.turns[:-1]
            for thing in (*turn.listed[:1], *turn.things[:1])
        ]
        others = [thing for thing in before if thing.name not in [own.name for own in here]]
        plan = next(self._readings(text), None)
        if others and plan is not None and rebinding.of_page(plan, self._fields):
            other = rebinding.found_instead(plan, others[-1:], self._fields, self._toolbox)
            yield rebinding.joined(plan, other), text

    def _named(self, plan: Plan, thing: Mention) -> Plan | None:
        """Return the plan with a thing's name where it looks for "it", if it does."""
        open_ = []
        for at, step in enumerate(plan.steps):
            value = step.argument(self._by[step.tool]) if step.tool in self._by else None
            # Who looked at a thing in the catalogue need not have ordered it.
            if thing.tool not in ("", step.tool) and "mine" not in _words(self._text):
                continue
            if isinstance(value, QuestionRef) or (
                isinstance(value, Literal) and _says_nothing(str(value.value))
            ):
                open_.append((at, thing.name))
        return rebinding.with_names(plan, open_, self._toolbox) if open_ else None

    def _named_again(self) -> Iterator[tuple[Plan, str]]:
        """Yield plans that look for the full name of what is named in part, or not at all."""
        text = back.without_opener(self._text)
        alone = next(self._readings(text), None)
        if alone is None:
            return
        known = {
            thing.name: thing for turn in self._talk.turns for thing in (*turn.listed, *turn.things)
        }
        names = []
        for at, step in enumerate(alone.steps):
            value = step.argument(self._by[step.tool]) if step.tool in self._by else None
            if isinstance(value, Literal):
                words = set(_words(str(value.value)))
                full = [
                    thing
                    for thing in known.values()
                    if thing.tool == step.tool and words < set(_words(thing.name))
                ]
                if full and len(alone.steps) > at + 1:
                    names.append((at, full[-1].name))
        if names:
            yield rebinding.with_names(alone, names, self._toolbox), text
        elif _looks_up_nothing(alone):
            subject = self._talk.subject()
            if subject is not None and back.asks(text) and back.names_a_part(text):
                yield from self._asked_of([subject], self._text, sure=False)
            elif back.has_opener(self._text) and self._topic(self._talk.last):
                yield from self._continued(self._talk.last)

    # A topic that goes on.

    def _topic(self, turn: Turn) -> bool:
        """Return whether a turn was about no thing, but asked a tool the question."""
        return not turn.things and not turn.listed and self._only_asks(turn.plan)

    def _goes_on(self) -> bool:
        """Return whether the question may be about the topic before it."""
        if self._alone is None:
            return True
        nothing = _looks_up_nothing(self._alone) and back.asks(self._text)
        return nothing or self._only_asks(self._alone)

    def _only_asks(self, plan: Plan) -> bool:
        """Return whether a plan does nothing but pass a text on to tools that find no things."""
        return all(
            step.tool not in self._by
            and len(step.arguments) > 0
            and all(isinstance(value, (QuestionRef, Literal)) for _, value in step.arguments)
            for step in plan.steps
        )

    def _continued(self, last: Turn) -> Iterator[tuple[Plan, str]]:
        """Ask the tool of the topic, with the topic before the question."""
        topic = f"{last.question} {self._text}"[-TOPIC:]
        plan = Plan(
            (
                Step(
                    last.plan.steps[-1].tool,
                    tuple((name, QuestionRef()) for name, _ in last.plan.steps[-1].arguments),
                ),
            )
        )
        yield rebinding.with_question(plan, topic, self._toolbox), topic

    # Readings of a question.

    def _readings(self, text: str) -> Iterator[Plan]:
        """Yield valid plans of a text that stands alone."""
        yield from self._planned(text, dict(self._request.context))

    def _supposed(self, text: str) -> Iterator[Plan]:
        """Yield valid plans of a text, as if what it points to were open on the page."""
        yield from self._planned(text, dict.fromkeys(sorted(self._fields), SUPPOSED))

    def _planned(self, text: str, context: dict[str, object]) -> Iterator[Plan]:
        try:
            request = PlanRequest(text, self._toolbox, context, max_steps=self._request.max_steps)
        except InputError:
            return
        yield from (reading.plan for reading in valid_readings(self._reuse, request))

    def _alone_is_of_page(self) -> bool:
        return self._alone is not None and rebinding.of_page(self._alone, self._fields)

    def _has_antecedent(self, reference: back.BackReference) -> bool:
        """Return whether the question itself names what some of its words point back to."""
        before = self._text[: reference.start]
        names = [
            str(value.value)
            for step in (self._alone.steps if self._alone else ())
            if step.tool in self._by
            and isinstance(value := step.argument(self._by[step.tool]), Literal)
            and not _says_nothing(str(value.value))
        ]
        if reference.kind == "several":
            return len(names) > 1
        return reference.kind == "pronoun" and any(is_span(name, before) for name in names)


def _replaced(last: Turn, name: str) -> str:
    """Return the last question with another thing in the place of its own."""
    for thing in last.things:
        at = last.question.casefold().find(thing.name.casefold())
        if at >= 0:
            return last.question[:at] + name + last.question[at + len(thing.name) :]
    return last.question


def _looks_up_nothing(plan: Plan) -> bool:
    return not any(step.arguments for step in plan.steps)


def _words(text: str) -> list[str]:
    return [run[0] for run in RUNS.finditer(normalized(text))]


def _says_nothing(name: str) -> bool:
    """Return whether a name is made of words that name nothing."""
    return all(word in _EMPTY for word in _words(name))


def _is_name(phrase: str) -> bool:
    return any(c.isupper() or c.isdigit() for c in phrase)


_EMPTY = frozenset(
    re.split(
        " ",
        "it its they them their this that these those one ones mine the a an my is are was "
        "of for and to in on me first second third last other",
    )
)
