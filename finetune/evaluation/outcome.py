"""The answers of planners, each compared with its gold plan."""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from casewright.errors import PlanError, told
from casewright.finetune.evaluation.item import EvaluationItem
from casewright.finetune.evaluation.verdict import PAPER_ARGUMENT_TOOLS, Verdict, judge, same_graph
from casewright.planner import Planner, PlanRequest, PlanResult, parse_plan
from casewright.planner.request import BatchPlanner
from casewright.stores.progress import progress_bar
from casewright.tools import Toolbox

#: Batches of a planner that are asked at once: it puts together questions that go well together.
_BATCHES = 8


@dataclass(frozen=True, slots=True)
class Answered:
    """A planner's answer to a question.

    Attributes:
        result: Its plan; ``None`` where it raised.
        error: What it raised, in one line; empty where it did not.
    """

    result: PlanResult | None
    error: str = ""


def ask_all(
    planner: Planner, requests: Sequence[PlanRequest], label: str, *, warm: bool = True
) -> list[Answered]:
    """Return a planner's answer to every request, in order.

    A planner that plans several questions together does so; the time of a plan is then its share.
    What it raises is kept as the answer to the question at hand.

    Args:
        planner: The planner.
        requests: What it is asked.
        label: For the progress bar.
        warm: Ask the first question once before, so that what is loaded at the first use is not in
            the time of a plan.
    """
    if warm and requests:
        with suppress(Exception):
            planner.plan(requests[0])
    answers: list[Answered] = []
    with progress_bar(label, len(requests)) as advance:
        for part in _parts(planner, requests):
            answers += _ask(planner, part)
            advance(len(part))
    return answers


def _parts(planner: Planner, requests: Sequence[PlanRequest]) -> Iterator[Sequence[PlanRequest]]:
    size = _BATCHES * max(1, planner.batch) if isinstance(planner, BatchPlanner) else 1
    for start in range(0, len(requests), size):
        yield requests[start : start + size]


def _ask(planner: Planner, requests: Sequence[PlanRequest]) -> list[Answered]:
    if isinstance(planner, BatchPlanner) and len(requests) > 1:
        # Of a batch that failed, the questions are asked one by one: one of them may be at fault.
        with suppress(Exception):
            results = planner.plan_many(requests)
            if len(results) == len(requests):
                return [Answered(result) for result in results]
    return [_ask_one(planner, request) for request in requests]


def _ask_one(planner: Planner, request: PlanRequest) -> Answered:
    try:
        return Answered(planner.plan(request))
    except Exception as error:  # noqa: BLE001 - a planner of anybody's may raise anything
        return Answered(None, told(error))


_TEXT = re.compile(r'"(?:[^"\\\n]|\\.)*"')
#: A step however it is written; names with dots are none of ours, but are named all the same.
_STEP = re.compile(r"\bs[0-9]+\s*=\s*([A-Za-z_][\w.\-]*)\s*\(")


def named_tools(result: PlanResult) -> tuple[str, ...]:
    """Return the tools that a planner named, in order.

    Those of its plan; where a language model wrote no valid plan, those of the text that it wrote,
    read leniently: every ``sN = name(`` outside of texts. Empty where a fallback plan stands in
    for a text that is not known.
    """
    if result.written:
        return tuple(_STEP.findall(_TEXT.sub('""', result.written)))
    return () if result.fallback else result.plan.tools


def unknown_tools(result: PlanResult, toolbox: Toolbox) -> tuple[str, ...]:
    """Return the tools that a planner named and the toolbox lacks, in order."""
    return tuple(name for name in named_tools(result) if name not in toolbox)


def with_a_tool_removed(items: Sequence[EvaluationItem], seed: int = 0) -> list[EvaluationItem]:
    """Return each question without one of the tools that its gold plan uses, drawn at random.

    Left out are questions whose gold plan looks nothing up: ``no_evidence`` is in every toolbox.
    """
    draw = random.Random(seed)
    return [item.without(draw.choice(item.removable)) for item in items if item.removable]


def only_provided(item: EvaluationItem, answered: Answered) -> bool:
    """Return whether a planner used the tools that it was given, and no others.

    Source: instruction following in REAPER (Joshi et al. 2024, section 5.3). Under a grammar of the
    toolbox, or where every plan is checked, the score is 1.00 by construction; planners with a
    language model are therefore asked with the grammar off.

    One that raised, named no tool, or had to be stood in for without a word of what it wrote did
    not.
    """
    if answered.result is None:
        return False
    named = named_tools(answered.result)
    return bool(named) and all(tool in item.request.toolbox for tool in named)


#: A tool that no toolbox has; one that others have, and this one lacks; an argument that the tool
#: does not declare, may not take from there, or that refers to what is not there.
STEP, ABSENT, ARGUMENT = "step", "absent", "argument"


def known_tools(items: Iterable[EvaluationItem]) -> frozenset[str]:
    """Return the tools that any of several items has, or needs."""
    results: set[str] = set()
    for item in items:
        results |= {tool.name for tool in item.request.toolbox} | set(item.query.plan.tools)
    return frozenset(results)


def inventions(
    item: EvaluationItem, result: PlanResult | None, known: Collection[str]
) -> frozenset[str]:
    """Return the kinds of steps and arguments that a planner invented.

    Source: REAPER (Joshi et al. 2024, section 5, Figures 3 to 5 and Table 3).

    Args:
        item: What was asked.
        result: The answer; of one that raised, nothing is known.
        known: The tools of all toolboxes.
    """
    if result is None:
        return frozenset()
    unknown = unknown_tools(result, item.request.toolbox)
    if unknown:
        return frozenset(ABSENT if name in known else STEP for name in unknown)
    try:
        plan = parse_plan(result.written) if result.written else result.plan
    except PlanError:
        return frozenset()
    try:
        item.request.validate(plan)
    except PlanError:
        return frozenset({ARGUMENT})
    return frozenset()


@dataclass(frozen=True, slots=True)
class Outcome:
    """Comparison of an answer with the gold plan; a planner that raised is wrong in everything.

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


def wrong_plans(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Return a JSON-plain row for every answer whose plan is not the gold plan's graph.

    ``wrong`` says whether other ``tools`` are called or the ``arguments`` differ; ``note`` is why
    a fallback stood in, or what the planner raised.
    """
    return [_row(entry) for entry in outcomes if not entry.graph_arguments]


def _row(one: Outcome) -> dict[str, Any]:
    query, result = one.item.query, one.result
    return {
        "id": query.record.id,
        "query": query.query,
        "context": query.record.context,
        "class": query.label,
        "wrong": "arguments" if one.graph else "tools",
        "right_plan": str(query.plan),
        "plan": None if result is None else str(result.plan),
        "confidence": None if result is None else result.confidence,
        "asks_back": result is not None and result.asks_back,
        "note": one.answered.error if result is None else result.fallback,
    }
