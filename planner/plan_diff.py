"""Differences between the steps of two plans, independent of the steps' order and numbers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from casewright.planner.plan import Plan


@dataclass(frozen=True, slots=True)
class StepDifference:
    """Comparison of a step of one plan with the matching step of another plan.

    Attributes:
        change: ``same`` if the steps are equal, ``changed`` if their arguments differ,
            ``only_first`` or ``only_second`` if only that plan has the step.
        first, second: The step's text in each plan; ``None`` if a plan lacks the step.
        arguments: Names of the arguments that differ; references to matching steps do not differ.
    """

    change: Literal["same", "changed", "only_first", "only_second"]
    first: str | None
    second: str | None
    arguments: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the difference as JSON."""
        return {**asdict(self), "arguments": list(self.arguments)}


def diff_plans(first: Plan, second: Plan) -> list[StepDifference]:
    """Return a comparison for each step of the first plan, then for steps only in the second.

    Equal steps are matched first, then steps with the same tool.
    """
    pairs = _pairs(first, second)
    differences = []
    for number, step in enumerate(first.steps, 1):
        text = f"s{number} = {step}"
        if number not in pairs:
            differences.append(StepDifference("only_first", text, None))
            continue
        match = second.steps[pairs[number] - 1]
        # References get the second plan's numbers, or a negative one if the step has no match.
        renumbered = step.renumbered({n: pairs.get(n, -n) for n in range(1, number)})
        names = dict.fromkeys(name for name, _ in (*renumbered.arguments, *match.arguments))
        changed_names = tuple(n for n in names if renumbered.argument(n) != match.argument(n))
        change: Literal["same", "changed"] = "changed" if changed_names else "same"
        match_text = f"s{pairs[number]} = {match}"
        differences.append(StepDifference(change, text, match_text, changed_names))
    return differences + [
        StepDifference("only_second", None, f"s{number} = {step}")
        for number, step in enumerate(second.steps, 1)
        if number not in pairs.values()
    ]


def _pairs(first: Plan, second: Plan) -> dict[int, int]:
    """Return a mapping from step numbers of the first plan to matching numbers of the second."""
    pairs: dict[int, int] = {}
    # Match by all contents, then by tool.
    rounds = ((_step_keys(first), _step_keys(second)), (first.tools, second.tools))
    for first_keys, second_keys in rounds:
        unmatched = [n for n in range(1, len(second_keys) + 1) if n not in pairs.values()]
        for number, key in enumerate(first_keys, 1):
            matches = [n for n in unmatched if second_keys[n - 1] == key]
            if matches and number not in pairs:
                pairs[number] = matches[0]
                unmatched.remove(matches[0])
    return pairs


def _step_keys(plan: Plan) -> list[int]:
    """Return a key for each step; steps that differ only in step numbers have equal keys."""
    keys: list[int] = []
    for step in plan.steps:
        # An invalid plan may refer to a later step, which has no key yet.
        inputs = [keys[r.step - 1] if r.step <= len(keys) else -1 for r in step.references()]
        unnumbered = step.renumbered(dict.fromkeys(range(1, len(plan.steps) + 1), 0))
        keys.append(hash((step.tool, frozenset(unnumbered.arguments), tuple(inputs))))
    return keys
