"""Training the classifier baseline: under a minute, on one core, for some thousand queries."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice

from casewright.errors import InputError, PlanError
from casewright.finetune.baselines.argument_finder import ArgumentFinder
from casewright.finetune.baselines.plan_ensemble import PlanEnsemble
from casewright.finetune.baselines.regression import ClassifierSettings, Floats
from casewright.planner import AnnotatedQuery, PlanRequest, PlanResult
from casewright.planner.fallback import fallback_plan
from casewright.stores import Encoder
from casewright.tools import alias

#: Plan shapes that are tried before the fallback plan.
ATTEMPTS = 8


class ClassifierPlanner:
    """Plans by classifiers, which know the tools and the plans of their training and no others.

    A tool that a request brings along is never used; one that a request lacks is respected.

    Args:
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


def train_classifiers(
    queries: Sequence[AnnotatedQuery],
    encoder: Encoder,
    settings: ClassifierSettings | None = None,
    weights: Mapping[str, Floats] | None = None,
) -> ClassifierPlanner:
    """Train the ensemble and the argument step; the same queries give the same planner.

    Queries whose plan uses a tool of their own, or whose toolbox lacks one, are left out: what
    another request can do says nothing of this one's tools.

    Args:
        settings: The defaults are those of the figures in the documentation.
        weights: Of an earlier training on the same, ``ensemble`` and ``words``.

    Raises:
        InputError: No query is left, all have one plan, or the weights are others'.
        DependencyError: scikit-learn is not installed.
    """
    given = settings or ClassifierSettings()
    known = [query for query in queries if _of_the_toolbox(query)]
    if len({query.plan.tools for query in known}) < 2:
        raise InputError(
            f"Classifiers cannot be trained: of {len(queries)} queries, {len(known)} use the "
            "toolbox as it is, and these have fewer than two different plans. Give more queries."
        )
    bare = PlanEnsemble.untrained(known, encoder.dimension, given)
    if weights is None:
        own = bare.fitted(known, encoder.embed([query.query for query in known]))
        words = ArgumentFinder.fit(known, given)
    else:
        own, words = weights["ensemble"], ArgumentFinder(weights["words"])
    if own.shape != bare.weights.shape:
        raise InputError(f"Weights of the form {own.shape} are of other classifiers.")
    return ClassifierPlanner(replace(bare, weights=own), words, encoder)


def _of_the_toolbox(query: AnnotatedQuery) -> bool:
    own = {alias(str(tool.get("name", ""))) for tool in query.record.tools_extra}
    return own.isdisjoint(query.plan.tools) and not query.record.tools_removed
