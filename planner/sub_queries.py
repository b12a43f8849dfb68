"""Decomposes a plan into sub-queries, and combines sub-queries into a plan.

A message may contain several questions. A sub-query answers one of them. It consists of a step
whose results no other step needs, and of all steps on which this step depends. Sub-queries of
different plan cases can be combined into a new plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

from casewright.planner.plan import Literal, Plan, Step, Value, context_fields, sub_plan
from casewright.planner.spans import is_span
from casewright.tools.spec import NO_EVIDENCE

#: Open literal: a placeholder for words of the message. A slot is an argument with this value.
OPEN = Literal("")


@dataclass(frozen=True, slots=True)
class SubQuery:
    """Steps that answer one question, with ``OPEN`` in place of words of the message.

    References are relative: in a ``StepRef``, step 1 is the previous step.
    """

    steps: tuple[Step, ...]

    @property
    def template(self) -> str:
        """Text of the template, equal for sub-queries that differ only in words of the message."""
        return "; ".join(map(str, self.steps))

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools, in the order of the steps."""
        return tuple(step.tool for step in self.steps)

    @property
    def slots(self) -> list[tuple[int, str]]:
        """Slots, each as the index of a step and the name of a parameter."""
        return [
            (index, name)
            for index, step in enumerate(self.steps)
            for name, value in step.arguments
            if value == OPEN
        ]

    @property
    def reach(self) -> int:
        """Number of steps from the first one back to the farthest referenced earlier step, or 0."""
        steps = enumerate(self.steps)
        return max((r.step - index for index, s in steps for r in s.references()), default=0)

    def context_fields(self) -> set[str]:
        """Return the names of the context fields that the steps need."""
        return set(context_fields(Plan(self.steps)))


def sub_queries_of(plan: Plan, question: str) -> list[tuple[SubQuery, list[str]]]:
    """Return the sub-queries of a plan, each with the texts of its open literals.

    The sub-queries are in the order of their last steps. A literal that is no span of the question
    stays a literal. A plan with invalid references has no sub-queries.
    """
    numbered = list(enumerate(plan.steps, 1))
    if any(not 1 <= ref.step < number for number, step in numbered for ref in step.references()):
        return []
    referenced = {ref.step for step in plan.steps for ref in step.references()}
    # Maps the number of a step in the plan to its position in the joined sub-queries.
    positions: dict[int, int] = {}
    sub_queries = []
    for last_number in (number for number, _ in numbered if number not in referenced):
        steps: list[Step] = []
        texts: list[str] = []
        for number in sorted(with_dependencies(plan, last_number) - positions.keys()):
            positions[number] = position = len(positions)
            step = plan.steps[number - 1]
            distances = {ref.step: position - positions[ref.step] for ref in step.references()}
            step = step.renumbered(distances)
            open_texts = {
                name: str(v.value) for name, v in step.arguments if _becomes_open(v, question)
            }
            texts += open_texts.values()
            arguments = ((name, OPEN if name in open_texts else v) for name, v in step.arguments)
            steps.append(Step(step.tool, tuple(arguments)))
        sub_queries.append((SubQuery(tuple(steps)), texts))
    return sub_queries


def joined_plan(sub_queries: Sequence[tuple[SubQuery, Sequence[str]]]) -> Plan:
    """Join sub-queries into a plan; each has the texts for its open literals."""
    steps: list[Step] = []
    for sub_query, texts in sub_queries:
        remaining_texts = iter(texts)
        for step in sub_query.steps:
            number = len(steps) + 1
            step = step.renumbered({ref.step: number - ref.step for ref in step.references()})
            arguments = [
                (name, Literal(next(remaining_texts)) if value == OPEN else value)
                for name, value in step.arguments
            ]
            steps.append(Step(step.tool, tuple(arguments)))
    return Plan(tuple(steps))


def without_no_evidence(plan: Plan) -> Plan:
    """Return a plan without ``no_evidence``, unless the plan calls only this tool."""
    numbers = [n for n, step in enumerate(plan.steps, 1) if step.tool != NO_EVIDENCE.name]
    return sub_plan(plan, numbers)[0] if numbers else plan


def with_dependencies(plan: Plan, number: int) -> set[int]:
    """Return the number of a step and the numbers of all steps on which it depends."""
    numbers: set[int] = set()
    pending = [number]
    while pending:
        if (next_number := pending.pop()) not in numbers:
            numbers.add(next_number)
            pending += [ref.step for ref in plan.steps[next_number - 1].references()]
    return numbers


def _becomes_open(value: Value, question: str) -> TypeGuard[Literal]:
    if not isinstance(value, Literal) or not isinstance(value.value, str):
        return False
    # An empty text is equal to ``OPEN``.
    return not value.value or is_span(value.value, question)
