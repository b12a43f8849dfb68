"""Secondary tasks that show a part of the plan: its beginning, or all but what a mask hides.

The answer is always the whole plan: that is what the planner's role asks for, and what can be
parsed and checked as any other plan.
"""

from __future__ import annotations

import random

from casewright.finetune.examples.secondary import MASKS, Posed, Subject, instructed
from casewright.planner.plan import Value

_BEGUN = (
    "The plan for the question below has been begun. Write the whole plan: what is there, "
    "unchanged, and the steps that are missing.",
    "Here is the beginning of a plan. Repeat it and go on until the plan is complete.",
    "Complete this plan. Keep what is there, word for word, and add the rest.",
    "Somebody stopped in the middle of this plan. Finish it, and write it out in full from s1 on.",
    "A plan breaks off after its first lines. Write it again with all that the question needs.",
)
_LOST_STEP = (
    "One step of this plan is hidden behind {mask}. Write the whole plan with the step in place.",
    "A step of this plan was lost: {mask} stands where it was. Put it back and write the plan in "
    "full.",
    "Replace {mask} by the step that belongs there. Leave the other steps as they are, and write "
    "all of them.",
    "The plan below lacks one step, marked {mask}. Which one? Answer with the complete plan.",
    "{mask} hides the call of one tool. Write the plan without gaps.",
)
_LOST_VALUES = (
    "Each {mask} in this plan hides the value of a parameter. Write the whole plan with all values "
    "filled in.",
    "Fill in the value that belongs in the place of each {mask}, and write out the whole plan.",
    "Tools and parameters of this plan are right, but wherever {mask} stands, a value is missing. "
    "Write the plan with every value.",
    "What values do the parameters marked {mask} take? Answer with the complete plan.",
    "Complete the calls: {mask} stands for a value that you have to find. Write all the steps.",
)


def complete_plan(subject: Subject, rng: random.Random) -> Posed | None:
    """Complete a plan of which the first steps are given; one of a single step has none to give."""
    lines = str(subject.evolved.plan).split("\n")
    if len(lines) < 2:
        return None
    begun = "\n".join(lines[: rng.randrange(1, len(lines))])
    given = f"Beginning of the plan:\n{begun}"
    return _posed(subject, rng.choice(_BEGUN), given)


def fill_step(subject: Subject, rng: random.Random) -> Posed | None:
    """Fill a masked step; where there is no other step, that would be planning itself."""
    lines = str(subject.evolved.plan).split("\n")
    if len(lines) < 2:
        return None
    mask = rng.choice(MASKS)
    place = rng.randrange(len(lines))
    lines[place] = f"s{place + 1} = {mask}"
    given = "Plan with a gap:\n" + "\n".join(lines)
    return _posed(subject, rng.choice(_LOST_STEP).format(mask=mask), given)


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
    return _posed(subject, rng.choice(_LOST_VALUES).format(mask=mask), given)


def _posed(subject: Subject, instruction: str, given: str) -> Posed:
    return Posed(instructed(subject.prompt, instruction, given), str(subject.evolved.plan))
