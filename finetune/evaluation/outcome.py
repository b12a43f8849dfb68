"""One planner's answer to one item, compared with the gold plan."""

from __future__ import annotations

from dataclasses import dataclass

from casewright.errors import PlanError
from casewright.finetune.evaluation.asking import Answered
from casewright.finetune.evaluation.isomorphism import same_graph
from casewright.finetune.evaluation.item import EvaluationItem
from casewright.finetune.evaluation.named_tools import unknown_tools
from casewright.finetune.evaluation.verdict import PAPER_ARGUMENT_TOOLS, Verdict, judge
from casewright.planner import PlanResult


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an answer compares; a planner that raised is wrong in everything.

    Attributes:
        item: What was asked.
        answered: The answer.
        verdict: Tools, arguments, class.
        graph: The plan is the gold plan's graph, by tools and references.
        graph_arguments: The same by arguments too.
        unknown: Tools that the planner named and the toolbox lacks.
        own: The planner gave a plan of its own, and it is valid; no fallback stands in for it.
    """

    item: EvaluationItem
    answered: Answered
    verdict: Verdict
    graph: bool
    graph_arguments: bool
    unknown: tuple[str, ...]
    own: bool

    @property
    def result(self) -> PlanResult | None:
        """The plan, where there is one."""
        return self.answered.result


def outcome(item: EvaluationItem, answered: Answered) -> Outcome:
    """Compare a planner's answer with the item's gold plan."""
    query, result = item.query, answered.result
    if result is None:
        paper = bool(PAPER_ARGUMENT_TOOLS & set(query.plan.tools))
        wrong = Verdict(query.label, "", tools=False, arguments=False, paper=paper, milliseconds=0)
        return Outcome(item, answered, wrong, False, False, (), False)
    plan = result.plan
    return Outcome(
        item,
        answered,
        judge(query, plan, result.milliseconds),
        same_graph(query, plan),
        same_graph(query, plan, arguments=True),
        unknown_tools(result, item.request.toolbox),
        not result.fallback and _valid(item, result),
    )


def _valid(item: EvaluationItem, result: PlanResult) -> bool:
    try:
        item.request.validate(result.plan)
    except PlanError:
        return False
    return True
