"""Answers of planners, and their comparison with gold plans."""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from casewright.errors import PlanError, one_line
from casewright.finetune.evaluation.item import EvaluationItem
from casewright.finetune.evaluation.verdict import Verdict, judge, same_graph
from casewright.planner import Planner, PlanRequest, PlanResult, parse_plan
from casewright.planner.request import BatchPlanner
from casewright.stores.progress import progress_bar
from casewright.tools import NO_EVIDENCE

#: Number of batches in one call of a batch planner, which forms the batches itself.
_BATCHES_AT_ONCE = 8
#: A planner's result, or the error that it raised, in one line.
Answer = PlanResult | str


def ask_all(planner: Planner, requests: Sequence[PlanRequest], label: str) -> list[Answer]:
    """Return a planner's answers in the order of the requests.

    A batch planner plans several questions together, and divides a batch's time equally among the
    plans. A first call, whose time does not count, loads the planner.
    """
    if requests:
        with suppress(Exception):
            planner.plan(requests[0])
    answers: list[Answer] = []
    size = _BATCHES_AT_ONCE * max(1, planner.batch) if isinstance(planner, BatchPlanner) else 1
    with progress_bar(label, len(requests)) as advance:
        for start in range(0, len(requests), size):
            chunk = requests[start : start + size]
            answers += _ask(planner, chunk)
            advance(len(chunk))
    return answers


def _ask(planner: Planner, requests: Sequence[PlanRequest]) -> list[Answer]:
    if isinstance(planner, BatchPlanner) and len(requests) > 1:
        # If one question makes the batch fail, the questions are planned one by one.
        with suppress(Exception):
            results = planner.plan_many(requests)
            if len(results) == len(requests):
                return [*results]
    answers: list[Answer] = []
    for request in requests:
        try:
            answers.append(planner.plan(request))
        except Exception as error:  # noqa: BLE001 - a user's planner may raise anything
            answers.append(one_line(error))
    return answers


#: A quoted text in a plan.
_QUOTED = re.compile(r'"(?:[^"\\\n]|\\.)*"')
#: The start of a step, with the tool's name as a group. Dots and hyphens make the name invalid.
_CALL = re.compile(r"\bs[0-9]+\s*=\s*([A-Za-z_][\w.\-]*)\s*\(")


def _named_tools(result: PlanResult) -> tuple[str, ...]:
    """Return the tools that a planner named, in order.

    If a language model wrote an invalid plan (``written``), every ``sN = name(`` outside of quotes
    names a tool. Else the plan names the tools; a fallback plan names none.
    """
    if result.written:
        return tuple(_CALL.findall(_QUOTED.sub('""', result.written)))
    return () if result.fallback else result.plan.tools


def with_a_tool_removed(items: Sequence[EvaluationItem], seed: int = 0) -> list[EvaluationItem]:
    """Return each item without one tool, drawn at random from the tools of the item's gold plan.

    Items with the gold plan ``no_evidence()`` are left out, since every toolbox has that tool.
    """
    rng = random.Random(seed)
    tools_of_items = [sorted({*item.query.plan.tools} - {NO_EVIDENCE.name}) for item in items]
    pairs = zip(items, tools_of_items, strict=True)
    return [item.without(rng.choice(tools)) for item, tools in pairs if tools]


def only_provided(item: EvaluationItem, answer: Answer) -> bool:
    """Return True if a planner named at least one tool, and only tools of the toolbox.

    Source: instruction following in REAPER (Joshi et al. 2024, section 5.3). With a grammar of the
    toolbox, or a check of every plan, the result is always True. For this figure, language models
    therefore plan without the grammar.
    """
    names = () if isinstance(answer, str) else _named_tools(answer)
    return bool(names) and all(tool in item.request.toolbox for tool in names)


#: Kinds of inventions. ``STEP``: a tool that no toolbox has. ``ABSENT``: a tool that only other
#: toolboxes have. ``ARGUMENT``: an argument that is not declared, has a source that the tool does
#: not allow, or refers to a missing result.
STEP, ABSENT, ARGUMENT = "step", "absent", "argument"


@dataclass(frozen=True, slots=True)
class PlanOutcome:
    """The comparison of an answer with the gold plan; an error counts as a wrong answer.

    Attributes:
        result: The planner's result; ``None`` after an error.
        error: The error, in one line.
        graph: The plan has the gold plan's graph of tools and references.
        graph_arguments: The plan also has the gold plan's arguments.
        unknown_tools: Tools that the planner named and the toolbox lacks.
        is_own_plan: The plan is valid, and is no fallback plan.
    """

    item: EvaluationItem
    result: PlanResult | None
    error: str
    verdict: Verdict
    graph: bool = False
    graph_arguments: bool = False
    unknown_tools: tuple[str, ...] = ()
    is_own_plan: bool = False

    def inventions(self, known_tools: Collection[str]) -> frozenset[str]:
        """Return the kinds of inventions in the answer; ``known_tools`` are all toolboxes' tools.

        Source: REAPER (Joshi et al. 2024, section 5, Figures 3 to 5 and Table 3).
        """
        if self.result is None or self.unknown_tools:
            return frozenset(ABSENT if name in known_tools else STEP for name in self.unknown_tools)
        try:
            plan = parse_plan(self.result.written) if self.result.written else self.result.plan
        except PlanError:
            return frozenset()
        return frozenset({ARGUMENT} if any(self.item.request.violations(plan)) else ())


def outcome(item: EvaluationItem, answer: Answer) -> PlanOutcome:
    """Return the comparison of a planner's answer with the item's gold plan."""
    query, request = item.query, item.request
    if isinstance(answer, str):
        # The verdict on an error: the gold plan's, but no class, and tools and arguments are wrong.
        verdict = judge(query, query.plan)
        verdict = replace(verdict, predicted="", right_tools=False, right_arguments=False)
        return PlanOutcome(item, result=None, error=answer, verdict=verdict)
    plan = answer.plan
    return PlanOutcome(
        item,
        result=answer,
        error="",
        verdict=judge(query, plan, answer.milliseconds),
        graph=same_graph(query, plan),
        graph_arguments=same_graph(query, plan, arguments=True),
        unknown_tools=tuple(n for n in _named_tools(answer) if n not in request.toolbox),
        is_own_plan=not answer.fallback and not any(request.violations(plan)),
    )


def wrong_plans(outcomes: Sequence[PlanOutcome]) -> list[dict[str, Any]]:
    """Return a row of JSON types for every answer whose graph or arguments are wrong.

    ``wrong`` is ``tools`` if the graph of tools and references is wrong, else ``arguments``.
    ``note`` is the reason for a fallback, or the planner's error.
    """
    return [
        {
            "id": o.item.query.record.id,
            "query": o.item.query.query,
            "context": o.item.query.record.context,
            "class": o.item.query.label,
            "wrong": "arguments" if o.graph else "tools",
            "right_plan": str(o.item.query.plan),
            "plan": None if o.result is None else str(o.result.plan),
            "confidence": None if o.result is None else o.result.confidence,
            "asks_back": o.result is not None and o.result.asks_back,
            "note": o.error if o.result is None else o.result.fallback,
        }
        for o in outcomes
        if not o.graph_arguments
    ]
