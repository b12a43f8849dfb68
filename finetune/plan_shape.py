"""The shape of a plan: which tools, fed from where, whatever the literals say."""

from __future__ import annotations

from casewright.planner.plan import ContextRef, ListValue, Literal, Plan, Step, StepRef, Value


def shape(plan: Plan) -> str:
    """Return the plan's text form with every literal left open."""
    return str(Plan(tuple(_open(step) for step in plan.steps)))


def task(plan: Plan) -> str:
    """Return the one tool whose results no other step needs, or ``several``."""
    needed = {reference.step for step in plan.steps for reference in step.references()}
    last = [step.tool for number, step in enumerate(plan.steps, 1) if number not in needed]
    return last[0] if len(last) == 1 else "several"


def feeds(plan: Plan) -> list[str]:
    """Return where arguments come from that are no literals: ``tool.parameter<source`` each."""
    results = []
    for step in plan.steps:
        for name, value in step.arguments:
            if isinstance(value, ContextRef):
                results.append(f"{step.tool}.{name}<context")
            elif isinstance(value, StepRef) and 1 <= value.step <= len(plan.steps):
                # Plan cases are parsed, not validated: a reference may point past the last step.
                results.append(f"{step.tool}.{name}<{plan.steps[value.step - 1].tool}")
    return sorted(set(results))


def _open(step: Step) -> Step:
    return Step(step.tool, tuple((name, _opened(value)) for name, value in step.arguments))


def _opened(value: Value) -> Value:
    if isinstance(value, ListValue):
        return ListValue(tuple(Literal("") if isinstance(v, Literal) else v for v in value.items))
    return Literal("") if isinstance(value, Literal) else value
