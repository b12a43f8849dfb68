"""Secondary tasks that show a part of the plan: its beginning, or all but what a mask hides.

The answer is always the whole plan: that is what the planner's role asks for, and what can be
parsed and checked as any other plan.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from string import ascii_uppercase

from casewright.errors import PlanError
from casewright.finetune.examples.secondary import MASKS, WORDINGS, Posed, Subject, instructed
from casewright.planner import ListValue, Plan, Step, StepRef, parse_plan, render_prompt
from casewright.planner.asks import feeders, restricted
from casewright.planner.plan import Value
from casewright.tools import NO_EVIDENCE, Toolbox, ToolSpec


def complete_plan(subject: Subject, rng: random.Random) -> Posed | None:
    """Complete a plan of which the first steps are given; one of a single step has none to give."""
    lines = str(subject.evolved.plan).split("\n")
    if len(lines) < 2:
        return None
    begun = "\n".join(lines[: rng.randrange(1, len(lines))])
    given = f"Beginning of the plan:\n{begun}"
    return _posed(subject, rng.choice(WORDINGS["begun"]), given)


def fill_step(subject: Subject, rng: random.Random) -> Posed | None:
    """Fill a masked step; where there is no other step, that would be planning itself."""
    lines = str(subject.evolved.plan).split("\n")
    if len(lines) < 2:
        return None
    mask = rng.choice(MASKS)
    place = rng.randrange(len(lines))
    lines[place] = f"s{place + 1} = {mask}"
    given = "Plan with a gap:\n" + "\n".join(lines)
    return _posed(subject, rng.choice(WORDINGS["lost_step"]).format(mask=mask), given)


def fill_parameters(subject: Subject, rng: random.Random) -> Posed | None:
    """Fill masked parameters: one at least.

    Two calls of one tool could exchange their values where both are hidden: of a parameter of one
    tool, values that differ are never hidden together.
    """
    plan = subject.evolved.plan
    places = [
        (number, step.tool, name, value)
        for number, step in enumerate(plan.steps, 1)
        for name, value in step.arguments
    ]
    if not places:
        return None
    mask = rng.choice(MASKS)
    chosen: dict[tuple[str, str], Value] = {}
    hidden = set()
    for number, tool, name, value in rng.sample(places, rng.randint(1, len(places))):
        if chosen.setdefault((tool, name), value) == value:
            hidden.add((number, name))
    lines = []
    for number, step in enumerate(plan.steps, 1):
        shown = ", ".join(
            f"{name}={mask if (number, name) in hidden else value}"
            for name, value in step.arguments
        )
        lines.append(f"s{number} = {step.tool}({shown})")
    given = "Plan with gaps:\n" + "\n".join(lines)
    return _posed(subject, rng.choice(WORDINGS["lost_values"]).format(mask=mask), given)


def _posed(subject: Subject, instruction: str, given: str) -> Posed:
    return Posed(instructed(subject.prompt, instruction, given), str(subject.evolved.plan))


#: How often steps are shuffled before the simplest listing is taken.
TRIES = 20


def order_steps(subject: Subject, rng: random.Random) -> Posed | None:
    """Put shuffled steps in order.

    Nothing but the references between them says what order steps must have: two that do not need
    each other may stand either way. The prompt therefore says which comes first, the one listed
    first, and steps are listed in such a way that this rule gives the plan as annotated. There is
    such a listing, other than the plan itself, where a step needs the one directly before it.
    """
    plan = subject.evolved.plan
    order = _listing(plan, rng)
    if order is None:
        return None
    lines = _lettered(plan, order)
    given = "Steps:\n" + "\n".join(lines)
    instruction = f"{rng.choice(WORDINGS['order'])} {WORDINGS['ties']}"
    return Posed(instructed(subject.prompt, instruction, given), str(plan))


def first_ready(plan: Plan, order: Sequence[int]) -> list[int]:
    """Return steps in the order in which they run: always the first listed that may come next.

    Args:
        plan: The plan, whose steps count from 0 here.
    """
    needs = [{ref.step - 1 for ref in step.references()} for step in plan.steps]
    waiting = list(order)
    done: list[int] = []
    while waiting:
        step = next(step for step in waiting if needs[step].issubset(done))
        waiting.remove(step)
        done.append(step)
    return done


def _listing(plan: Plan, rng: random.Random) -> list[int] | None:
    """Return another order of the steps that the rule turns into the plan's own."""
    own = list(range(len(plan.steps)))
    fed = [
        number
        for number in own[1:]
        if any(ref.step == number for ref in plan.steps[number].references())
    ]
    if not fed or len(own) > len(ascii_uppercase):
        return None
    for _ in range(TRIES):
        order = rng.sample(own, len(own))
        if order != own and first_ready(plan, order) == own:
            return order
    # A step that is listed before the one that it needs has to wait for it, and for nothing else.
    later = rng.choice(fed)
    own[later - 1], own[later] = later, later - 1
    return own


def _lettered(plan: Plan, order: Sequence[int]) -> list[str]:
    letters = {step: ascii_uppercase[place] for place, step in enumerate(order)}

    def shown(value: Value) -> str:
        match value:
            case StepRef(step, field, index):
                place = f"[{index}]" if index else ""
                return f"{letters[step - 1]}{place}.{field}"
            case ListValue(items):
                return "[" + ", ".join(map(shown, items)) + "]"
        return str(value)

    def call(step: Step) -> str:
        return f"{step.tool}({', '.join(f'{name}={shown(v)}' for name, v in step.arguments)})"

    return [f"{letters[number]} = {call(plan.steps[number])}" for number in order]


#: How often every tool that the plan needs is provided: not every such instruction takes one away.
ALL_PROVIDED = 0.4


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
        instruction, prompt = rng.choice(WORDINGS["allowed"]).format(tools=left), subject.prompt
    else:
        request = replace(evolved.request, toolbox=_reduced(toolbox, gone))
        instruction, prompt = rng.choice(WORDINGS["gone"]), render_prompt(request)
    answer = without(plan, gone) or Plan((Step(NO_EVIDENCE.name),))
    return Posed(instructed(prompt, f"{instruction} {WORDINGS['rest']}"), str(answer))


def without(plan: Plan, gone: str) -> Plan | None:
    """Return what is left of a plan without a tool, or ``None`` where that is nothing.

    A step whose results no other needs answers something that was asked; it is left, with the
    steps that it feeds on, where none of them calls it.
    """
    fed = {ref.step for step in plan.steps for ref in step.references()}
    asks = [feeders(plan, last) for last in set(range(1, len(plan.steps) + 1)) - fed]
    kept = [own for own in asks if all(plan.steps[number - 1].tool != gone for number in own)]
    return restricted(plan, set().union(*kept)) if kept else None


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
