"""What every planner must beat beside the fallback plan: right plans for the wrong questions."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence

from casewright.finetune.evaluation.item import EvaluationItem
from casewright.planner import Plan, PlanRequest, PlanResult


class ShuffledPlans:
    """The gold plans, dealt out among the questions at random.

    It is right as often as plans are alike. Its plans need not be valid for their questions.

    Args:
        items: All questions that it will be asked.
        seed: Of the order.
    """

    name = "shuffled"

    def __init__(self, items: Sequence[EvaluationItem], seed: int = 0) -> None:
        plans = [item.query.plan for item in items]
        random.Random(seed).shuffle(plans)
        self._plans: dict[str, Plan] = {
            _key(item.request): plan for item, plan in zip(items, plans, strict=True)
        }

    def plan(self, request: PlanRequest) -> PlanResult:
        """Return the plan that this question was dealt."""
        return PlanResult(self._plans[_key(request)], self.name)

    async def aplan(self, request: PlanRequest) -> PlanResult:
        """Return the plan that this question was dealt."""
        return self.plan(request)


def _key(request: PlanRequest) -> str:
    return json.dumps([request.question, dict(request.context)], sort_keys=True)
