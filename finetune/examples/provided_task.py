"""The secondary task of using only the provided tools."""

from __future__ import annotations

import random
from dataclasses import replace

from casewright.errors import PlanError
from casewright.finetune.examples.secondary import Posed, Subject, instructed
from casewright.planner import ListValue, Plan, Step, StepRef, parse_plan, render_prompt
from casewright.planner.plan import Scalar, Value
from casewright.tools import NO_EVIDENCE, Toolbox, ToolSpec

#: How often every tool that the plan needs is provided: not every such instruction takes one away.
ALL_PROVIDED = 0.4

_REST = (
    "Leave out each look-up that would need another tool, together with the steps that serve it "
    "alone, and put nothing in its place. If nothing is left, the plan is s1 = no_evidence()."
)
_GONE = (
    "Use only the tools above, whatever else the question may call for.",
    "Some tools may be out of order today: only those listed above are there.",
    "Plan with the provided tools alone.",
    "No tools but the ones above may be called.",
)
_ALLOWED = (
    "Of the tools above, only these may be used: {tools}.",
    "For this question you may call no other tools than {tools}.",
    "Restrict the plan to the following tools: {tools}.",
    "These tools work at present: {tools}. The others above are out of order.",
)


def provided_tools(subject: Subject, rng: random.Random) -> Posed | None:
    """Use only the provided tools, whether or not that is all that the plan needs.

    A tool is taken away, out of the toolbox or by an instruction that lists those allowed. The
    answer is the plan without the asks that needed it, and ``no_evidence`` where nothing else was
    asked: the prompt says so, since a question may often be answered by a makeshift. It does not
    apply to a plan that needs no tool, nor where other tools too are annotated as right.
    """
    evolved = subject.evolved
    toolbox, plan = evolved.request.toolbox, evolved.plan
    needed = [name for name in dict.fromkeys(plan.tools) if name != NO_EVIDENCE.name]
    if not needed or evolved.query.accept:
        return None
    others = [name for name in toolbox.names if name not in {*needed, NO_EVIDENCE.name}]
    # Where there is no other tool, an instruction that takes away none would say nothing.
    spared = bool(others) and rng.random() < ALL_PROVIDED
    gone = rng.choice(others if spared else needed)
    if rng.random() < 0.5:
        left = ", ".join(name for name in toolbox.names if name != gone)
        instruction, prompt = rng.choice(_ALLOWED).format(tools=left), subject.prompt
    else:
        request = replace(evolved.request, toolbox=_reduced(toolbox, gone))
        instruction, prompt = rng.choice(_GONE), render_prompt(request)
    answer = without(plan, gone) or Plan((Step(NO_EVIDENCE.name),))
    return Posed(instructed(prompt, f"{instruction} {_REST}"), str(answer))


def without(plan: Plan, gone: str) -> Plan | None:
    """Return what is left of a plan without a tool, or ``None`` where that is nothing.

    A step whose results no other needs answers something that was asked; it is left, with the
    steps that it feeds on, where none of them calls it.
    """
    fed = {ref.step for step in plan.steps for ref in step.references()}
    kept: set[int] = set()
    for last in set(range(1, len(plan.steps) + 1)) - fed:
        own = _feeding(plan, last)
        if all(plan.steps[number - 1].tool != gone for number in own):
            kept |= own
    numbers = {number: place for place, number in enumerate(sorted(kept), 1)}
    steps = [_renumbered(plan.steps[number - 1], numbers) for number in sorted(kept)]
    return Plan(tuple(steps)) if steps else None


def _feeding(plan: Plan, number: int) -> set[int]:
    found, waiting = set(), [number]
    while waiting:
        here = waiting.pop()
        if here not in found:
            found.add(here)
            waiting += [ref.step for ref in plan.steps[here - 1].references()]
    return found


def _renumbered(step: Step, numbers: dict[int, int]) -> Step:
    def scalar(value: Scalar) -> Scalar:
        return replace(value, step=numbers[value.step]) if isinstance(value, StepRef) else value

    def renumbered(value: Value) -> Value:
        if isinstance(value, ListValue):
            return ListValue(tuple(map(scalar, value.items)))
        return scalar(value)

    return Step(step.tool, tuple((name, renumbered(value)) for name, value in step.arguments))


def _reduced(toolbox: Toolbox, gone: str) -> Toolbox:
    """Return the toolbox without a tool and without the examples that call it."""

    def clean(tool: ToolSpec) -> ToolSpec:
        if tool.example is None:
            return tool
        try:
            calls = parse_plan(tool.example.plan).tools
        except PlanError:
            return replace(tool, example=None)
        return replace(tool, example=None) if gone in calls else tool

    return Toolbox(clean(tool) for tool in toolbox if tool.name != gone)
