"""The secondary task of putting shuffled steps in order."""

from __future__ import annotations

import random
from collections.abc import Sequence
from string import ascii_uppercase

from casewright.finetune.examples.secondary import Posed, Subject, instructed
from casewright.planner import ListValue, Plan, Step, StepRef
from casewright.planner.plan import Value

#: How often steps are shuffled before the simplest listing is taken.
TRIES = 20

_WORDINGS = (
    "The steps of this plan are out of order; letters stand for them. Number them so that each "
    "step comes after those whose results it uses.",
    "Put these steps in an order in which they can be run: what a step refers to has to come "
    "before it. Write them as a plan.",
    "Here are the steps of a plan, shuffled and lettered. Write the plan, each step below the ones "
    "that it takes values from.",
    "Sort these steps into a plan that works from top to bottom. A step may refer to earlier ones "
    "alone.",
)
_TIES = "Where more than one step could come next, take the one that is listed first."


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
    instruction = f"{rng.choice(_WORDINGS)} {_TIES}"
    return Posed(instructed(subject.prompt, instruction, given), str(plan))


def first_ready(plan: Plan, order: Sequence[int]) -> list[int]:
    """Return steps in the order in which they run: always the first listed that may come next.

    Args:
        plan: The plan, whose steps count from 0 here.
        order: Its steps as they are listed.
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
