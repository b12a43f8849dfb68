"""Queries that were planned for: what each plan took, and what came of it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from casewright.bench.chat.calls import Call, CallLog
from casewright.finetune.evaluation import judge
from casewright.planner import AnnotatedQuery, Planner
from casewright.tools import Toolbox


@dataclass(frozen=True, slots=True)
class Planned:
    """One query, planned for.

    Attributes:
        milliseconds: The whole plan.
        calls: Calls of the model.
        waited: Milliseconds spent in them.
        tokens: ``input`` and ``output``, by the server's own count.
        fallback: Why the plan is not the planner's own; empty where it is.
        unanswered: The last call failed, or was not over in time.
        right: The tool sequence is the annotated one, or one that also counts as right.
    """

    milliseconds: float
    calls: int
    waited: float
    tokens: Mapping[str, int]
    fallback: str
    unanswered: bool
    right: bool


def plan_all(
    planner: Planner, queries: Sequence[AnnotatedQuery], toolbox: Toolbox, log: CallLog
) -> list[Planned]:
    """Plan for every query in turn, and for the first once before.

    Args:
        planner: Who plans.
        queries: What for; at least one.
        toolbox: The tools to plan with.
        log: Of the planner's chat model, if it has one.
    """
    planner.plan(queries[0].record.request(toolbox))
    return [_planned(planner, query, toolbox, log) for query in queries]


def _planned(planner: Planner, query: AnnotatedQuery, toolbox: Toolbox, log: CallLog) -> Planned:
    before = len(log.calls)
    result = planner.plan(query.record.request(toolbox))
    ended, calls = time.perf_counter(), log.calls[before:]
    return Planned(
        result.milliseconds,
        len(calls),
        sum(_milliseconds(call, ended) for call in calls),
        result.tokens,
        result.fallback,
        bool(calls) and not calls[-1].answered,
        judge(query, result.plan).tools,
    )


def _milliseconds(call: Call, now: float) -> float:
    # One that was given up has not ended.
    return ((call.ended or now) - call.started) * 1000


def row_of(planned: Sequence[Planned]) -> dict[str, Any]:
    """Return the table's row of a planner: means over its plans, and shares of them."""
    spent = [one.milliseconds for one in planned]
    return {
        "plans": len(planned),
        "calls": _mean([one.calls for one in planned], 3),
        "tokens_in": _mean([one.tokens.get("input", 0) for one in planned], 1),
        "tokens_out": _mean([one.tokens.get("output", 0) for one in planned], 1),
        "ms_p50": round(float(np.median(spent)), 2),
        "ms_p95": round(float(np.percentile(spent, 95)), 2),
        "valid_at_first": _mean([not one.fallback and one.calls < 2 for one in planned], 4),
        "valid_repaired": _mean([not one.fallback and one.calls >= 2 for one in planned], 4),
        "fallback": _mean([bool(one.fallback) for one in planned], 4),
        "no_answer": _mean([bool(one.fallback) and one.unanswered for one in planned], 4),
        "tools_own": _mean([not one.fallback and one.right for one in planned], 4),
        "tools": _mean([one.right for one in planned], 4),
    }


def reasons_of(planned: Sequence[Planned], most: int = 3) -> list[str]:
    """Return why calls were not answered, the commonest first, and how often."""
    counted = Counter(one.fallback for one in planned if one.fallback and one.unanswered)
    return [f"{count} × {why}" for why, count in counted.most_common(most)]


def _mean(values: Sequence[float], digits: int) -> float:
    return round(float(np.mean(values)), digits)
