"""Evidence: what the steps found, each piece with an id that the executor gave it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from casewright.graph.outcome import Outcome
from casewright.planner import Plan
from casewright.tools import Toolbox, evidence_text


@dataclass(frozen=True, slots=True)
class Evidence:
    """One result of one step.

    Attributes:
        id: ``E1``, ``E2``, … in plan order.
        step: The step that found it.
        tool: Its tool.
        text: The result as text.
        source: Where the tool says that it comes from.
        row: The result's fields.
        final: No other step needed this step's results: they are what was asked for.
    """

    id: str
    step: str
    tool: str
    text: str
    source: str
    row: Mapping[str, Any]
    final: bool

    def to_json(self) -> dict[str, Any]:
        """Return the JSON-plain form."""
        return {**asdict(self), "row": dict(self.row)}


def collect(plan: Plan, outcomes: Sequence[Outcome], toolbox: Toolbox) -> list[Evidence]:
    """Return the results of all steps that ended ``done``, in plan order.

    Of a step that others needed, only the results that they referred to are evidence.
    """
    used = {(ref.step, ref.index) for step in plan.steps for ref in step.references()}
    needed = {number for number, _ in used}
    found: list[Evidence] = []
    for number, outcome in enumerate(outcomes, 1):
        results = toolbox[outcome.tool].results if outcome.tool in toolbox else ()
        for index, row in enumerate(outcome.rows):
            if number in needed and (number, index) not in used:
                continue
            text = evidence_text(row, results or [name for name in row if name != "source"])
            found.append(
                Evidence(
                    id=f"E{len(found) + 1}",
                    step=outcome.step,
                    tool=outcome.tool,
                    text=text,
                    source=str(row.get("source", "")),
                    row=row,
                    final=number not in needed,
                )
            )
    return found


def shortfalls(outcomes: Iterable[Outcome]) -> list[str]:
    """Return one sentence for each step that found nothing: what is missing, and why."""
    reasons = {
        "empty": "found nothing",
        "failed": "failed",
        "timed_out": "took too long",
        "skipped": "was skipped",
    }
    return [
        f"{outcome.step} ({outcome.tool}) {reasons[outcome.status]}."
        + (f" {outcome.error}" if outcome.error else "")
        for outcome in outcomes
        if outcome.status != "done"
    ]
