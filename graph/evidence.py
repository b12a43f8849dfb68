"""Evidence: the results of the steps, each with an id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from casewright.graph.outcome import Outcome
from casewright.planner import Plan
from casewright.tools import Toolbox, evidence_text
from casewright.tools.spec import NEAREST_EVENT


@dataclass(frozen=True, slots=True)
class Evidence:
    """A result of a step, which an answer can cite.

    Attributes:
        id: ``E1``, ``E2``, … in plan order.
        source: The origin that the tool gives for the result; empty if it gives none.
        final: True if no other step refers to the result's step; such a step answers the question.
    """

    id: str
    step: str
    tool: str
    text: str
    source: str
    row: Mapping[str, Any]
    final: bool

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {name: getattr(self, name) for name in self.__slots__} | {"row": dict(self.row)}


def collect_evidence(plan: Plan, outcomes: Sequence[Outcome], toolbox: Toolbox) -> list[Evidence]:
    """Return the results of the ``done`` steps as evidence, in the order of the outcomes.

    If other steps refer to a step, only the results that those steps use become evidence.
    """
    used_results = {(ref.step, ref.index) for step in plan.steps for ref in step.references()}
    referenced_steps = {number for number, _ in used_results}
    items: list[Evidence] = []
    for outcome in outcomes:
        number = int(outcome.step[1:])
        result_fields = toolbox[outcome.tool].results if outcome.tool in toolbox else ()
        for index, row in enumerate(outcome.rows):
            if number in referenced_steps and (number, index) not in used_results:
                continue
            text = evidence_text(row, result_fields or [name for name in row if name != "source"])
            items.append(
                Evidence(
                    id=f"E{len(items) + 1}",
                    step=outcome.step,
                    tool=outcome.tool,
                    text=text,
                    source=str(row.get("source", "")),
                    row=row,
                    final=number not in referenced_steps,
                )
            )
    return items


def missing_texts(outcomes: Iterable[Outcome], toolbox: Toolbox) -> list[str]:
    """Return one sentence for each step without results, with the reason."""
    reasons = {"failed": "failed", "timed_out": "took too long", "skipped": "was skipped"}
    return [
        (
            _nothing_found_text(outcome, toolbox)
            if outcome.status == "empty"
            else f"{outcome.step} ({outcome.tool}) {reasons[outcome.status]}."
        )
        + (f" {outcome.error}" if outcome.error else "")
        for outcome in outcomes
        if outcome.status != "done"
    ]


def _nothing_found_text(outcome: Outcome, toolbox: Toolbox) -> str:
    """Return a sentence that says that a step found nothing, and the nearest titles if reported."""
    reports = (report for report in outcome.reports if report.get("event") == NEAREST_EVENT)
    nearest = next(reports, None)
    if nearest is None:
        return toolbox[outcome.tool].nothing if outcome.tool in toolbox else "Nothing found."
    titles = "; ".join(map(str, nearest.get("titles", ())))
    query = " ".join(str(nearest.get("query", "")).split())
    return f"Nothing found about “{query}”." + (f" Nearest: {titles}." if titles else "")
