"""Difference of two plans by steps, independent of the steps' order and numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from casewright.planner.plan import Plan


@dataclass(frozen=True, slots=True)
class StepDifference:
    """Step of a plan and the matching step of another plan.

    Attributes:
        change: ``changed`` if arguments of the same tool differ.
        first, second: The step's text in each plan; ``None`` if the plan lacks the step.
        arguments: Names of differing arguments; references to matching steps are equal.
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
    """Return pairs of matching steps of two plans; steps of the second plan alone come last.

    Equal steps match first, then steps with the same tool.
    """
    pairs = _pairs(first, second)
    differences = []
    for number, step in enumerate(first.steps, 1):
        shown = f"s{number} = {step}"
        if number not in pairs:
            differences.append(StepDifference("only_first", shown, None))
            continue
        other = second.steps[pairs[number] - 1]
        # A step of the first plan without a match has no number in the second.
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
    """Return a mapping from step numbers of the first plan to matching ones of the second."""
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
    """Return a key for each step; equal steps have equal keys."""
    keys: list[int] = []
    for step in plan.steps:
        # An invalid plan may refer to a later step.
        needed = [keys[r.step - 1] if r.step <= len(keys) else -1 for r in step.references()]
        bare = step.renumbered(dict.fromkeys(range(1, len(plan.steps) + 1), 0))
        keys.append(hash((step.tool, frozenset(bare.arguments), tuple(needed))))
    return keys
