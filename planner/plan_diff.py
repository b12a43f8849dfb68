"""The difference of two plans, step by step, whatever order and numbers the steps have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from casewright.planner.plan import Plan


@dataclass(frozen=True, slots=True)
class StepDifference:
    """A step of one plan beside that of the other.

    Attributes:
        change: ``changed`` where arguments of the same tool differ.
        first, second: The step as each plan writes it; ``None`` if the plan has no such step.
        arguments: Names of the arguments that differ; a reference is the same where it refers to
            steps that stand beside each other.
    """

    change: Literal["same", "changed", "only_first", "only_second"]
    first: str | None
    second: str | None
    arguments: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the JSON-plain form."""
        return {
            "change": self.change,
            "first": self.first,
            "second": self.second,
            "arguments": list(self.arguments),
        }


def diff_plans(first: Plan, second: Plan) -> list[StepDifference]:
    """Return the steps of two plans side by side, last those that only the second has.

    Steps that do the same stand beside each other; of the others, those of the same tool.
    """
    pairs = _pairs(first, second)
    differences = []
    for number, step in enumerate(first.steps, 1):
        shown = f"s{number} = {step}"
        if number not in pairs:
            differences.append(StepDifference("only_first", shown, None))
            continue
        other = second.steps[pairs[number] - 1]
        # A step of the first that stands beside none has no number in the second.
        there = step.renumbered({n: pairs.get(n, -n) for n in range(1, number)})
        names = dict.fromkeys(name for name, _ in (*there.arguments, *other.arguments))
        changed = tuple(name for name in names if there.argument(name) != other.argument(name))
        differences.append(
            StepDifference(
                "changed" if changed else "same", shown, f"s{pairs[number]} = {other}", changed
            )
        )
    beside = {*pairs.values()}
    return differences + [
        StepDifference("only_second", None, f"s{number} = {step}")
        for number, step in enumerate(second.steps, 1)
        if number not in beside
    ]


def _pairs(first: Plan, second: Plan) -> dict[int, int]:
    """Return the number of a step in the second plan by that in the first."""
    pairs: dict[int, int] = {}
    keys = ((_whole(first), _whole(second)), (first.tools, second.tools))
    for ours, theirs in keys:
        free = [number for number in range(1, len(theirs) + 1) if number not in pairs.values()]
        for number, key in enumerate(ours, 1):
            if number in pairs:
                continue
            match = next((other for other in free if theirs[other - 1] == key), None)
            if match is not None:
                pairs[number] = match
                free.remove(match)
    return pairs


def _whole(plan: Plan) -> list[int]:
    """Return a key of each step that is the same for steps that do the same."""
    keys: list[int] = []
    for step in plan.steps:
        # A plan that breaks the static checks may refer to a later step.
        needed = [keys[r.step - 1] if r.step <= len(keys) else -1 for r in step.references()]
        bare = step.renumbered(dict.fromkeys(range(1, len(plan.steps) + 1), 0))
        keys.append(hash((step.tool, frozenset(bare.arguments), tuple(needed))))
    return keys
