"""Plans taken apart into sub-queries, and put together again.

A message may ask several things. A sub-query answers one of them: a step whose results no other
step needs, with the steps before it that it feeds on. Those of different plan cases can be joined
to a plan that no case has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from casewright.planner.plan import ContextRef, ListValue, Literal, Plan, Step, StepRef, Value
from casewright.planner.spans import is_span
from casewright.tools.spec import NO_EVIDENCE

#: Stands where a sub-query's text literal is left open.
OPEN = Literal("")


@dataclass(frozen=True, slots=True)
class Ask:
    """Sub-query: the steps that answer one thing, with the words of the question left open.

    Attributes:
        steps: Its steps. ``StepRef.step`` counts back from the step that refers: 1 is the step
            before it. An open literal is ``OPEN``.
    """

    steps: tuple[Step, ...]

    @property
    def form(self) -> str:
        """Template of the steps as text: sub-queries that share it differ in the user's words."""
        return "; ".join(map(str, self.steps))

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools in the order of the steps."""
        return tuple(step.tool for step in self.steps)

    @property
    def slots(self) -> list[tuple[int, str]]:
        """Places of open literals: index of the step, parameter."""
        return [
            (index, name)
            for index, step in enumerate(self.steps)
            for name, value in step.arguments
            if value == OPEN
        ]

    @property
    def reach(self) -> int:
        """Number of steps before its first that it refers to; 0 where it stands alone."""
        return max(
            (
                ref.step - index
                for index, step in enumerate(self.steps)
                for ref in step.references()
            ),
            default=0,
        )

    def context_fields(self) -> set[str]:
        """Return the fields of the context that the steps need."""
        values = [value for step in self.steps for _, value in step.arguments]
        return {value.field for value in values if isinstance(value, ContextRef)}


def asks_of(plan: Plan, question: str) -> list[tuple[Ask, list[str]]]:
    """Return the sub-queries of a plan in its order, each with the texts of its open literals.

    Args:
        plan: A plan; one whose references point past its steps has no sub-queries.
        question: A text that is no span of it stays as it is: it is no wording of the user's.
    """
    numbered = list(enumerate(plan.steps, 1))
    if any(not 1 <= ref.step < number for number, step in numbered for ref in step.references()):
        return []
    needed = {ref.step for step in plan.steps for ref in step.references()}
    placed: dict[int, int] = {}
    sub_queries = []
    for last in (n for n in range(1, len(plan.steps) + 1) if n not in needed):
        own = sorted(feeders(plan, last) - placed.keys())
        steps, texts = [], []
        for number in own:
            placed[number] = len(placed)
            step = plan.steps[number - 1]

            def opened(value: Value, here: int = placed[number]) -> Value:
                if isinstance(value, StepRef):
                    return StepRef(here - placed[value.step], value.field, value.index)
                if _is_wording(value, question):
                    return OPEN
                return value

            steps.append(_mapped(step, opened))
            texts += [
                str(value.value)
                for _, value in step.arguments
                if isinstance(value, Literal) and _is_wording(value, question)
            ]
        sub_queries.append((Ask(tuple(steps)), texts))
    return sub_queries


def joined(asks: Sequence[tuple[Ask, Sequence[str]]]) -> Plan:
    """Return the plan of sub-queries joined; the texts fill their open literals in order.

    Raises:
        ValueError: A sub-query has another number of open literals than texts, or reaches back
            past the plan's first step.
    """
    steps: list[Step] = []
    for ask, texts in asks:
        if ask.reach > len(steps):
            raise ValueError(f"{ask.form} refers to a step that no sub-query before it has.")
        if len(texts) != len(ask.slots):
            raise ValueError(f"{ask.form} takes {len(ask.slots)} texts, not {len(texts)}.")
        left = iter(texts)
        for step in ask.steps:

            def closed(
                value: Value, here: int = len(steps) + 1, left: Iterator[str] = left
            ) -> Value:
                if isinstance(value, StepRef):
                    return StepRef(here - value.step, value.field, value.index)
                return Literal(next(left)) if value == OPEN else value

            steps.append(_mapped(step, closed))
    return Plan(tuple(steps))


def needed(plan: Plan) -> Plan:
    """Return a plan without ``no_evidence`` beside other steps: it says that there are none."""
    kept = [n for n, step in enumerate(plan.steps, 1) if step.tool != NO_EVIDENCE.name]
    if not kept or len(kept) == len(plan.steps):
        return plan
    return restricted(plan, kept)


def restricted(plan: Plan, kept: Iterable[int]) -> Plan:
    """Return the plan of some of its steps, counted from 1; these need no others."""
    places = {old: new for new, old in enumerate(sorted(kept), 1)}

    def moved(value: Value) -> Value:
        if isinstance(value, StepRef) and value.step in places:
            return StepRef(places[value.step], value.field, value.index)
        return value

    return Plan(tuple(_mapped(plan.steps[number - 1], moved) for number in places))


def feeders(plan: Plan, number: int) -> set[int]:
    """Return a step and every step that it needs."""
    fed_by, todo = set(), [number]
    while todo:
        here = todo.pop()
        if here not in fed_by:
            fed_by.add(here)
            todo += [ref.step for ref in plan.steps[here - 1].references()]
    return fed_by


def _is_wording(value: Value, question: str) -> bool:
    if not isinstance(value, Literal) or not isinstance(value.value, str):
        return False
    # An empty text cannot be told from an open one, and says as little.
    return not value.value or is_span(value.value, question)


def _mapped(step: Step, change: Callable[[Value], Value]) -> Step:
    def deep(value: Value) -> Value:
        # A list's texts are left: it is taken over as it stands, but for its references.
        if isinstance(value, ListValue):
            return ListValue(
                tuple(change(v) if isinstance(v, StepRef) else v for v in value.items)  # type: ignore[misc]
            )
        return change(value)

    return Step(step.tool, tuple((name, deep(value)) for name, value in step.arguments))
