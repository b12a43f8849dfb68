"""Proposed messages with plans: valid, and unlike each other and those that exist."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

from casewright.errors import InputError, PlanError
from casewright.finetune.queries.annotation import checked_record
from casewright.finetune.queries.query_writer import Dropped, SeenQuestions, UnusableError
from casewright.planner import AnnotatedQuery, Literal, Plan, QuestionRef, Step, is_span, parse_plan
from casewright.planner.asks import asks_of, joined
from casewright.planner.literals import text_literals, with_literals
from casewright.planner.spans import normalized
from casewright.tools import NO_EVIDENCE, Parameter, Source, Toolbox


@dataclass(slots=True)
class Drafts:
    """Proposed messages.

    Attributes:
        records: Annotated queries, to be kept or dropped by a person.
        dropped: What was left out, by reason.
    """

    records: list[dict[str, Any]] = field(default_factory=list)
    dropped: Counter[Dropped] = field(default_factory=Counter)


def worth_a_look(
    proposed: Iterable[Mapping[str, Any]], toolbox: Toolbox, seen: SeenQuestions, count: int
) -> Drafts:
    """Return the first proposals whose plans can be run and that are unlike all others.

    Args:
        proposed: Records with query, context and plan.
        toolbox: The tools that plans may use.
        seen: The questions that are there; those that are taken are added.
        count: At most how many.
    """
    result = Drafts()
    for item in proposed:
        if len(result.records) == count:
            break
        try:
            record = checked_record({"id": message_id("d", item), **item}, toolbox, ())
            seen.take(record["query"])
        except UnusableError as unusable:
            result.dropped[unusable.why] += 1
        except (PlanError, InputError):
            result.dropped[Dropped.INVALID] += 1
        else:
            result.records.append(record)
    return result


def message_id(prefix: str, record: Mapping[str, Any]) -> str:
    """Return an id by what ``message_key`` tells: the same message has the same."""
    facts = json.dumps(message_key(record), sort_keys=True)
    return f"{prefix}-{hashlib.sha256(facts.encode()).hexdigest()[:12]}"


def message_key(record: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what makes a message another one: its question, what was known, who asked."""
    about = (record.get(name) or None for name in ("context", "history", "tenant"))
    return (normalized(str(record["query"])), *about)


#: What nobody looks anything up for.
SMALL_TALK = (
    "hello there",
    "thank you, that was all",
    "never mind, I found it myself",
    "what can you do for me",
    "good morning, how are you today",
    "ok, bye",
)
#: How two messages become one.
JOINS = ("{0}, and {1}", "{0}? Also, {1}", "{0}; besides, {1}")


@dataclass(frozen=True, slots=True)
class Draft:
    """A message, what is known beside it, and its plan."""

    query: str
    plan: Plan
    context: Mapping[str, Any]

    def record(self) -> dict[str, Any]:
        """Return it as an annotated query's record, without an id."""
        return {"query": self.query, "context": dict(self.context), "plan": str(self.plan)}


def template_drafts(
    toolbox: Toolbox, queries: Sequence[AnnotatedQuery] = (), seed: int = 0
) -> Iterator[Draft]:
    """Yield messages, kind by kind in turn: examples, other values, other choices, several asks.

    They may be alike, and their plans may break static checks.

    Args:
        toolbox: The tools; those with an example are proposed.
        queries: Annotated queries, to take values from and to join.
        seed: Draws which are joined, and how.
    """
    examples = [
        Draft(tool.example.query, parse_plan(tool.example.plan), {})
        for tool in toolbox
        if tool.example is not None
    ]
    known = [
        Draft(query.query, query.plan, query.record.context)
        for query in queries
        if not (query.record.history or query.record.tools_extra or query.record.tools_removed)
    ]
    there = [*examples, *known]
    kinds = [
        iter(examples),
        _other_values(there, toolbox),
        _other_choices(there, toolbox),
        _joined(there, toolbox, random.Random(seed)),
        (Draft(text, Plan((Step(NO_EVIDENCE.name),)), {}) for text in SMALL_TALK),
    ]
    while kinds:
        left = []
        for kind in kinds:
            if (draft := next(kind, None)) is not None:
                yield draft
                left.append(kind)
        kinds = left


def _other_values(there: Sequence[Draft], toolbox: Toolbox) -> Iterator[Draft]:
    """Yield messages with a text of another message in the place of their own."""
    values: dict[str, list[str]] = defaultdict(list)
    for item in there:
        for _, name, text in text_literals(item.plan):
            if is_span(text, item.query) and text not in values[name]:
                values[name].append(text)
    for item in there:
        for index, name, text in text_literals(item.plan):
            if not _choices(toolbox, item.plan.steps[index], name):
                for other in values[name]:
                    yield from _exchanged(item, (index, name), text, (text, other), other)


def _other_choices(there: Sequence[Draft], toolbox: Toolbox) -> Iterator[Draft]:
    """Yield messages that say another of a parameter's choices, where they say one."""
    for item in there:
        for index, name, text in text_literals(item.plan):
            for other in _choices(toolbox, item.plan.steps[index], name):
                words = (text.replace("_", " "), other.replace("_", " "))
                yield from _exchanged(item, (index, name), text, words, other)


def _exchanged(
    one: Draft, place: tuple[int, str], text: str, words: tuple[str, str], other: str
) -> Iterator[Draft]:
    """Yield a message with other words, and its plan with another text; not where both are one.

    Args:
        one: The message.
        place: Of the text in its plan: a step's index and a parameter.
        text: The text there.
        words: What the message says, and what it is to say instead.
        other: The text to take its place.
    """
    pattern = re.compile(rf"(?<!\w){re.escape(words[0])}(?!\w)", re.IGNORECASE)
    result = pattern.findall(one.query)
    if len(result) == 1 and other != text:
        query = pattern.sub(lambda _: words[1], one.query)
        yield replace(one, query=query, plan=with_literals(one.plan, {place: other}))


def _joined(there: Sequence[Draft], toolbox: Toolbox, rng: random.Random) -> Iterator[Draft]:
    """Yield messages that ask what two others ask."""
    pairs = list(combinations(there, 2))
    rng.shuffle(pairs)
    for first, second in pairs:
        parts = [_spelled(item, toolbox) for item in (first, second)]
        same = first.context.keys() & second.context.keys()
        if None in parts or any(first.context[name] != second.context[name] for name in same):
            continue
        asks = [ask for part in parts if part for ask in asks_of(part.plan, part.query)]
        texts = [_stripped(item.query) for item in (first, second)]
        query = rng.choice(JOINS).format(*texts)
        yield Draft(query, joined(asks), {**first.context, **second.context})


def _spelled(one: Draft, toolbox: Toolbox) -> Draft | None:
    """Return a message whose plan names its words in the place of ``question``, if it may.

    In a message that asks several things, ``question`` is all of them.
    """
    steps = []
    for step in one.plan.steps:
        if step.tool == NO_EVIDENCE.name:
            return None
        arguments = []
        for name, value in step.arguments:
            if isinstance(value, QuestionRef):
                parameter = _parameter(toolbox, step, name)
                if parameter is None or not {Source.LITERAL, Source.SPAN} & set(parameter.sources):
                    return None
                value = Literal(_stripped(one.query))
            arguments.append((name, value))
        steps.append(Step(step.tool, tuple(arguments)))
    return replace(one, plan=Plan(tuple(steps)))


def _stripped(text: str) -> str:
    return text.strip().rstrip(".?! ")


def _choices(toolbox: Toolbox, step: Step, name: str) -> Sequence[str]:
    parameter = _parameter(toolbox, step, name)
    return () if parameter is None else parameter.choices


def _parameter(toolbox: Toolbox, step: Step, name: str) -> Parameter | None:
    return toolbox[step.tool].parameter(name) if step.tool in toolbox else None
