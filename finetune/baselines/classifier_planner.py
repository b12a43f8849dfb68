"""REAPER's baseline as a planner: an ensemble of classifiers, arguments by a separate step."""

from __future__ import annotations

import time
from itertools import islice

from casewright.errors import PlanError
from casewright.finetune.baselines.argument_finder import ArgumentFinder
from casewright.finetune.baselines.plan_ensemble import PlanEnsemble
from casewright.planner import PlanRequest, PlanResult
from casewright.planner.fallback import fallback_plan
from casewright.stores import Encoder

#: Plan shapes that are tried before the fallback plan.
ATTEMPTS = 8


class ClassifierPlanner:
    """Plans by classifiers, which know the tools and the plans of their training and no others.

    A tool that a request brings along is never used; one that a request lacks is respected.

    Args:
        ensemble: Says which plan.
        arguments: Finds the words that it asks for.
        encoder: The one that the ensemble was trained with.
    """

    name = "classifiers"

    def __init__(self, ensemble: PlanEnsemble, arguments: ArgumentFinder, encoder: Encoder) -> None:
        self.ensemble = ensemble
        self.arguments = arguments
        self.encoder = encoder

    def plan(self, request: PlanRequest) -> PlanResult:
        """Return the likeliest plan that passes the static checks, or a fallback plan."""
        started = time.perf_counter()
        attempts = 0
        reason = "No plan that the classifiers know uses only this request's tools and context."
        vector = self.encoder.embed([request.question])[0]
        for shape in islice(self.ensemble.ranked(request, vector), ATTEMPTS):
            attempts += 1
            plan = self.arguments.filled(shape, request.question)
            try:
                request.validate(plan)
            except PlanError as error:
                reason = str(error)
                continue
            return PlanResult(plan, self.name, attempts, "", _since(started))
        plan = fallback_plan(request)
        return PlanResult(plan, self.name, attempts + 1, reason, _since(started))

    async def aplan(self, request: PlanRequest) -> PlanResult:
        """The same; it takes a few milliseconds and does not wait for anything."""
        return self.plan(request)


def _since(started: float) -> float:
    return (time.perf_counter() - started) * 1000
