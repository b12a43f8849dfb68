"""Planners' answers, each compared with its gold plan."""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from casewright.errors import PlanError, told
from casewright.finetune.evaluation.item import EvaluationItem
from casewright.finetune.evaluation.verdict import PAPER_ARGUMENT_TOOLS, Verdict, judge, same_graph
from casewright.planner import Plan, Planner, PlanRequest, PlanResult, parse_plan
from casewright.planner.request import BatchPlanner
from casewright.stores.progress import progress_bar
from casewright.tools import Toolbox

#: Batches of a planner that it gets at once: it puts together questions that go well together.
_BATCHES = 8


@dataclass(frozen=True, slots=True)
class Answered:
    """A planner's answer to a question.

    Attributes:
        result: Its plan; ``None`` where it raised.
        error: The error that it raised, in one line.
    """

    result: PlanResult | None
    error: str = ""


def ask_all(planner: Planner, requests: Sequence[PlanRequest], label: str) -> list[Answered]:
    """Return a planner's answers or errors in the order of the requests.

    A batch planner plans several questions together; the time of a plan is then its share. The
    first question is asked once before, so that loading is not in the time of a plan.
    """
    if requests:
        with suppress(Exception):
            planner.plan(requests[0])
    answers: list[Answered] = []
    size = _BATCHES * max(1, planner.batch) if isinstance(planner, BatchPlanner) else 1
    with progress_bar(label, len(requests)) as advance:
        for start in range(0, len(requests), size):
            part = requests[start : start + size]
            answers += _ask(planner, part)
            advance(len(part))
    return answers


def _ask(planner: Planner, requests: Sequence[PlanRequest]) -> list[Answered]:
    if isinstance(planner, BatchPlanner) and len(requests) > 1:
        # One question of a failed batch may be at fault: the others get an answer each.
        with suppress(Exception):
            results = planner.plan_many(requests)
            if len(results) == len(requests):
                return [Answered(result) for result in results]
    answers = []
    for request in requests:
        try:
            answers.append(Answered(planner.plan(request)))
        except Exception as error:  # noqa: BLE001 - a user's planner may raise anything
            answers.append(Answered(None, told(error)))
    return answers


_TEXT = re.compile(r'"(?:[^"\\\n]|\\.)*"')
#: A step in any spelling; names with dots are invalid, but count.
_STEP = re.compile(r"\bs[0-9]+\s*=\s*([A-Za-z_][\w.\-]*)\s*\(")


def _named_tools(result: PlanResult) -> tuple[str, ...]:
    """Return the tools that a planner named, in order.

    Those of its plan; where a language model wrote no valid plan, those of its text: every
    ``sN = name(`` outside of quotes. Empty where a fallback plan replaces an unknown text.
    """
    if result.written:
        return tuple(_STEP.findall(_TEXT.sub('""', result.written)))
    return () if result.fallback else result.plan.tools


def _unknown_tools(result: PlanResult, toolbox: Toolbox) -> tuple[str, ...]:
    return tuple(name for name in _named_tools(result) if name not in toolbox)


def with_a_tool_removed(items: Sequence[EvaluationItem], seed: int = 0) -> list[EvaluationItem]:
    """Return the items without one tool of their gold plans, drawn at random.

    Items whose gold plan looks nothing up are left out: every toolbox has ``no_evidence``.
    """
    draw = random.Random(seed)
    return [item.without(draw.choice(item.removable)) for item in items if item.removable]


def only_provided(item: EvaluationItem, answered: Answered) -> bool:
    """Return whether a planner named tools, and only those of the toolbox.

    Source: instruction following in REAPER (Joshi et al. 2024, section 5.3). Under a grammar of the
    toolbox, or where every plan is checked, the score is 1.00 by construction; planners with a
    language model are therefore asked with the grammar off.
    """
    names = _named_tools(answered.result) if answered.result else ()
    return bool(names) and all(tool in item.request.toolbox for tool in names)


#: A tool that no toolbox has; one that only other toolboxes have; an argument that the tool does
#: not declare, from a source that it does not admit, or that refers to a missing result.
STEP, ABSENT, ARGUMENT = "step", "absent", "argument"


def known_tools(items: Iterable[EvaluationItem]) -> frozenset[str]:
    """Return the tools of all items' toolboxes and gold plans."""
    return frozenset(
        name for item in items for name in (*item.request.toolbox.names, *item.query.plan.tools)
    )


def inventions(
    item: EvaluationItem, result: PlanResult | None, known: Collection[str]
) -> frozenset[str]:
    """Return the kinds of steps and arguments that a planner invented; ``known`` are all tools.

    Source: REAPER (Joshi et al. 2024, section 5, Figures 3 to 5 and Table 3).
    """
    if result is None:
        return frozenset()
    unknown = _unknown_tools(result, item.request.toolbox)
    if unknown:
        return frozenset(ABSENT if name in known else STEP for name in unknown)
    try:
        plan = parse_plan(result.written) if result.written else result.plan
    except PlanError:
        return frozenset()
    return frozenset() if _is_valid(item, plan) else frozenset({ARGUMENT})


def _is_valid(item: EvaluationItem, plan: Plan) -> bool:
    try:
        item.request.validate(plan)
    except PlanError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class PlanOutcome:
    """Comparison of an answer with the gold plan; a planner that raised is wrong in everything.

    Attributes:
        graph: The plan is the gold plan's graph, by tools and references.
        graph_arguments: The same by arguments too.
        unknown: Tools that the planner named and the toolbox lacks.
        own: The planner's own plan, not a fallback's, and valid.
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


def outcome(item: EvaluationItem, answered: Answered) -> PlanOutcome:
    """Compare a planner's answer with the item's gold plan."""
    query, result = item.query, answered.result
    if result is None:
        paper = bool(PAPER_ARGUMENT_TOOLS & set(query.plan.tools))
        wrong = Verdict(query.label, "", tools=False, arguments=False, paper=paper, milliseconds=0)
        return PlanOutcome(item, answered, wrong, False, False, (), False)
    plan = result.plan
    return PlanOutcome(
        item,
        answered,
        judge(query, plan, result.milliseconds),
        same_graph(query, plan),
        same_graph(query, plan, arguments=True),
        _unknown_tools(result, item.request.toolbox),
        not result.fallback and _is_valid(item, plan),
    )


def wrong_plans(outcomes: Sequence[PlanOutcome]) -> list[dict[str, Any]]:
    """Return a JSON-plain row for every answer whose plan is not the gold plan's graph.

    ``wrong`` is ``tools`` where other tools are called, else ``arguments``; ``note`` is the reason
    of a fallback, or the planner's error.
    """
    rows = []
    for entry in outcomes:
        if entry.graph_arguments:
            continue
        query, result = entry.item.query, entry.result
        rows.append(
            {
                "id": query.record.id,
                "query": query.query,
                "context": query.record.context,
                "class": query.label,
                "wrong": "arguments" if entry.graph else "tools",
                "right_plan": str(query.plan),
                "plan": None if result is None else str(result.plan),
                "confidence": None if result is None else result.confidence,
                "asks_back": result is not None and result.asks_back,
                "note": entry.answered.error if result is None else result.fallback,
            }
        )
    return rows
