"""A plan's shape, class and argument sources. They do not depend on the plan's literals."""

from __future__ import annotations

from casewright.planner.plan import ContextRef, Literal, Plan, StepRef

#: The class of plans with several last tools; see ``last_tools``.
MULTI_STEP = "multi_step"


def shape(plan: Plan) -> str:
    """Return the plan's text with every literal empty."""
    steps = (
        step.mapped(lambda value: Literal("") if isinstance(value, Literal) else value)
        for step in plan.steps
    )
    return str(Plan(tuple(steps)))


def plan_class(plan: Plan) -> str:
    """Return the class of a plan: its last tool, or ``multi_step`` if it has several last tools."""
    tools = last_tools(plan)
    return tools[0] if len(tools) == 1 else MULTI_STEP


def last_tools(plan: Plan) -> list[str]:
    """Return the tools of the steps whose results no other step needs."""
    needed_steps = {reference.step for step in plan.steps for reference in step.references()}
    return [step.tool for number, step in enumerate(plan.steps, 1) if number not in needed_steps]


def argument_sources(plan: Plan) -> list[str]:
    """Return the arguments that refer to the context or a step, as ``tool.parameter<source``.

    The source is ``context`` or that step's tool. The list is sorted, without duplicates.
    """
    sources = set()
    for step in plan.steps:
        for name, value in step.arguments:
            if isinstance(value, ContextRef):
                sources.add(f"{step.tool}.{name}<context")
            elif isinstance(value, StepRef) and 1 <= value.step <= len(plan.steps):
                # A plan case is not validated, so it may refer to a step that does not exist.
                sources.add(f"{step.tool}.{name}<{plan.steps[value.step - 1].tool}")
    return sorted(sources)
