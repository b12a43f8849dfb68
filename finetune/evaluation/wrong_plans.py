"""The plans that a planner got wrong, each beside the right one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from casewright.finetune.evaluation.outcome import Outcome


def wrong_plans(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Return a JSON-plain row for every answer whose plan is not the gold plan's graph.

    ``wrong`` says whether other ``tools`` are called or the ``arguments`` differ; ``note`` is why
    a fallback stood in, or what the planner raised.
    """
    return [_row(one) for one in outcomes if not one.graph_arguments]


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
