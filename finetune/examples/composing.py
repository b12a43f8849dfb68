"""Messages with several asks, composed of messages with one.

Hand-written messages ask mostly for one thing. Two of the same toolbox, joined, ask for both, and
their plan is both plans in order (compare GECA, Andreas 2020, and COG, Qiu et al. 2022: a model
that sees its examples recombined generalises to compositions).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from casewright.planner import AnnotatedQuery, Plan
from casewright.planner.plan import ListValue, QuestionRef, Scalar, Step, StepRef, Value
from casewright.tools import NO_EVIDENCE

#: Most steps and characters of a composed message.
STEPS, CHARACTERS = 8, 320
#: How messages are joined: {0} and {1} with their end marks, {a} and {b} without, and {b} begins
#: small where its first word is an ordinary one.
JOINS = (
    "{0} {1}",
    "{0} {1}",
    "{0}\n{1}",
    "{a}, and {b}?",
    "{a} and {b}",
    "{a} and also {b}",
    "{0} Also, {b}.",
    "{0} And {b}?",
    "{a}; {b}",
    "{a}, {b}",
    "{a} - {b}",
    "{0} Oh, and {b}?",
    "{0} One more thing: {b}.",
    "Two things: {a}; {b}.",
    "1) {0} 2) {1}",
    "First {a}, then {b}.",
    "{a} as well as {b}",
    "{a} / {b}",
    "{0} While you are at it, {b}.",
    "hi, {a}, plus {b}, thanks",
)
#: First words that are written small within a sentence.
_WORDS = """
a an all any are at can could did do does find for from get give have has how if in
is it let list look may my of on our please pull show tell the there this to was we
were what whats when where which who whose why will with would you your
"""
_ORDINARY = frozenset(_WORDS.split())


def composed(
    queries: Sequence[AnnotatedQuery], share: float, rng: random.Random
) -> list[AnnotatedQuery]:
    """Return messages of which a share was joined to such with two or three asks.

    A message that is joined does not stand alone any more, so that none is a case of itself.

    Args:
        queries: Of one toolbox.
        share: Of the messages, to be joined with others.
        rng: Draws messages and words.
    """
    order = rng.sample(queries, len(queries))
    free = [query for query in order if _composable(query)][: round(share * len(queries))]
    used = {id(query) for query in free}
    return [*(query for query in order if id(query) not in used), *_in_groups(free, rng)]


def joined(
    queries: Sequence[AnnotatedQuery], count: int, rng: random.Random
) -> list[AnnotatedQuery]:
    """Return what so many messages of one toolbox are joined to; none stands alone."""
    free = [query for query in queries if _composable(query)]
    chosen = rng.sample(free, min(count, len(free)))
    own = {id(query) for query in chosen}
    return [query for query in _in_groups(chosen, rng) if id(query) not in own]


def _in_groups(free: list[AnnotatedQuery], rng: random.Random) -> Iterator[AnnotatedQuery]:
    """Yield messages joined by two or three, and those that go with no other as they are."""
    while free:
        query = free.pop()
        for _ in range(1 if rng.random() < 0.85 else 2):
            other = next((other for other in free if _joinable(query, other)), None)
            if other is not None:
                free.remove(other)
                query = _joined(query, other, rng.choice(JOINS))
        yield query


def _composable(query: AnnotatedQuery) -> bool:
    """Return whether a plan means the same beside another one."""
    values = [value for step in query.plan.steps for _, value in step.arguments]
    whole = any(isinstance(value, QuestionRef) for value in values)
    return not whole and NO_EVIDENCE.name not in query.plan.tools


def _joinable(first: AnnotatedQuery, second: AnnotatedQuery) -> bool:
    """Return whether two messages may come from one person at one moment."""
    ours, theirs = _known(first.record.context), _known(second.record.context)
    return (
        all(theirs.get(name, value) == value for name, value in ours.items())
        # A page that is open for one of them alone would be a decoy for the other.
        and (ours.keys() == theirs.keys() or not ours or not theirs)
        and len(first.plan.steps) + len(second.plan.steps) <= STEPS
        and len(first.query) + len(second.query) <= CHARACTERS
    )


def _known(context: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in context.items() if value is not None}


def _joined(first: AnnotatedQuery, second: AnnotatedQuery, join: str) -> AnnotatedQuery:
    parts = [first.query.strip(), second.query.strip()]
    begun, other = (text.rstrip(" .?!;") for text in parts)
    word = other.split(maxsplit=1)[0].casefold().rstrip(",'s") if other else ""
    if word in _ORDINARY:
        other = other[0].lower() + other[1:]
    record = first.record.model_copy(
        update={
            "id": f"{first.record.id}+{second.record.id}",
            "query": join.format(*parts, a=begun, b=other),
            "context": {**_known(first.record.context), **_known(second.record.context)},
        }
    )
    plan = _one_plan(first, second)
    return AnnotatedQuery(record, plan, first.label)


def _one_plan(first: AnnotatedQuery, second: AnnotatedQuery) -> Plan:
    """Return both plans in order; a step that both have is taken once."""
    steps = list(first.plan.steps)
    numbers: list[int] = []
    for step in second.plan.steps:
        arguments = tuple((name, _moved(value, numbers)) for name, value in step.arguments)
        moved = Step(step.tool, arguments)
        if moved not in steps:
            steps.append(moved)
        numbers.append(steps.index(moved) + 1)
    return Plan(tuple(steps))


def _moved(value: Value, numbers: Sequence[int]) -> Value:
    """Return a value whose references name the steps' new numbers."""
    if isinstance(value, ListValue):
        return ListValue(tuple(_moved_item(item, numbers) for item in value.items))
    return _moved_item(value, numbers)


def _moved_item(item: Scalar, numbers: Sequence[int]) -> Scalar:
    return replace(item, step=numbers[item.step - 1]) if isinstance(item, StepRef) else item
