"""Plans bound to other things: one that asks of the page asks of what was named instead."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from casewright.planner.history.mentions import Mention
from casewright.planner.plan import (
    ContextRef,
    ListValue,
    Literal,
    Plan,
    QuestionRef,
    Scalar,
    Step,
    StepRef,
    Value,
)
from casewright.tools import Source, Toolbox, ToolSpec

Change = Callable[[Scalar], Scalar]


def finders(toolbox: Toolbox) -> dict[str, str]:
    """Return the tools that find a thing by its name, with the parameter that takes the name."""
    wanted = {
        parameter.name
        for tool in toolbox
        for parameter in tool.parameters
        if Source.STEP in parameter.sources
    }
    names = {}
    for tool in toolbox:
        required = [own for own in tool.parameters if own.required]
        by_name = len(required) == 1 and Source.LITERAL in required[0].sources
        if by_name and not wanted.isdisjoint(tool.results):
            names[tool.name] = required[0].name
    return names


def page_fields(toolbox: Toolbox) -> set[str]:
    """Return the fields by which a page may name a thing that a finder finds as well."""
    results = {field for name in finders(toolbox) for field in toolbox[name].results}
    return {
        parameter.name
        for tool in toolbox
        for parameter in tool.parameters
        if Source.CONTEXT in parameter.sources and parameter.name in results
    }


def fields_of(step: Step) -> set[str]:
    """Return the fields of the context that a step refers to."""
    return {
        value.field
        for _, argument in step.arguments
        for value in _scalars(argument)
        if isinstance(value, ContextRef)
    }


def of_page(plan: Plan, fields: Collection[str]) -> bool:
    """Return whether a plan asks of the page."""
    return any(fields_of(step) & set(fields) for step in plan.steps)


def found_instead(
    plan: Plan, things: Sequence[Mention], fields: Collection[str], toolbox: Toolbox
) -> Plan:
    """Return the plan with what asks of the page asked of each thing, found by its name first.

    Args:
        plan: A plan that refers to fields of the page.
        things: At least one, each with a tool that finds it.
        fields: Those fields.
        toolbox: The request's.
    """
    by = finders(toolbox)
    steps = [Step(thing.tool, ((by[thing.tool], Literal(thing.name)),)) for thing in things]
    # Of each old step, its number in the new plan for each thing; one number where it needs none.
    numbers: dict[int, list[int]] = {}
    for number, step in enumerate(plan.steps, 1):
        needs = [numbers[reference.step] for reference in step.references()]
        copies = (
            len(things)
            if fields_of(step) & set(fields) or any(len(own) > 1 for own in needs)
            else 1
        )
        numbers[number] = []
        for copy in range(copies):

            def bound(value: Scalar, copy: int = copy) -> Scalar:
                if isinstance(value, ContextRef) and value.field in fields:
                    return StepRef(copy + 1, value.field)
                if isinstance(value, StepRef):
                    own = numbers[value.step]
                    return StepRef(own[min(copy, len(own) - 1)], value.field, value.index)
                return value

            steps.append(mapped(step, bound))
            numbers[number].append(len(steps))
    return Plan(tuple(steps))


def of_this_page(plan: Plan, fields: Collection[str], toolbox: Toolbox) -> Plan | None:
    """Return the plan with what it finds by name taken from the page; ``None`` if it finds none."""
    by = finders(toolbox)
    dropped = {
        number
        for number, step in enumerate(plan.steps, 1)
        if step.tool in by and any(number == ref.step for s in plan.steps for ref in s.references())
    }
    kept: list[Step] = []
    numbers: dict[int, int] = {}
    for number, step in enumerate(plan.steps, 1):
        if number in dropped:
            continue
        if any(ref.step in dropped and ref.field not in fields for ref in step.references()):
            return None

        def bound(value: Scalar) -> Scalar:
            if isinstance(value, StepRef):
                if value.step in dropped:
                    return ContextRef(value.field)
                return StepRef(numbers[value.step], value.field, value.index)
            return value

        new = mapped(step, bound)
        if new not in kept:
            kept.append(new)
        numbers[number] = kept.index(new) + 1
    return Plan(tuple(kept)) if kept else None


def joined(first: Plan, second: Plan) -> Plan:
    """Return the steps of one plan, then those of another."""
    shift = len(first.steps)

    def later(value: Scalar) -> Scalar:
        if isinstance(value, StepRef):
            return StepRef(value.step + shift, value.field, value.index)
        return value

    return Plan((*first.steps, *(mapped(step, later) for step in second.steps)))


def with_names(plan: Plan, names: Sequence[tuple[int, str]], toolbox: Toolbox) -> Plan:
    """Return the plan whose finders, given by their index, look for other names."""
    by, wanted = finders(toolbox), dict(names)
    return Plan(
        tuple(
            Step(step.tool, ((by[step.tool], Literal(wanted[index])),)) if index in wanted else step
            for index, step in enumerate(plan.steps)
        )
    )


def with_question(plan: Plan, text: str, toolbox: Toolbox) -> Plan:
    """Return the plan with a text where it passes the question on, wherever texts are admitted."""
    steps = []
    for step in plan.steps:
        tool = toolbox[step.tool]

        arguments = tuple(
            (name, Literal(text) if _open(tool, name, value) else value)
            for name, value in step.arguments
        )
        steps.append(Step(step.tool, arguments))
    return Plan(tuple(steps))


def _open(tool: ToolSpec, name: str, value: Value) -> bool:
    parameter = tool.parameter(name)
    return (
        isinstance(value, QuestionRef)
        and parameter is not None
        and Source.LITERAL in parameter.sources
    )


def mapped(step: Step, change: Change) -> Step:
    """Return the step with every value changed, those inside lists too."""

    def deep(value: Value) -> Value:
        if isinstance(value, ListValue):
            return ListValue(tuple(map(change, value.items)))
        return change(value)

    return Step(step.tool, tuple((name, deep(value)) for name, value in step.arguments))


def _scalars(value: Value) -> tuple[Scalar, ...]:
    return value.items if isinstance(value, ListValue) else (value,)
