"""Training the classifier baseline: under a minute, on one core, for some thousand queries."""

from __future__ import annotations

from collections.abc import Sequence

from casewright.errors import InputError
from casewright.finetune.baselines.argument_finder import ArgumentFinder
from casewright.finetune.baselines.classifier_planner import ClassifierPlanner
from casewright.finetune.baselines.plan_ensemble import PlanEnsemble
from casewright.finetune.baselines.settings import ClassifierSettings
from casewright.planner import AnnotatedQuery
from casewright.stores import Encoder
from casewright.tools import alias


def train_classifiers(
    queries: Sequence[AnnotatedQuery],
    encoder: Encoder,
    settings: ClassifierSettings | None = None,
) -> ClassifierPlanner:
    """Train the ensemble and the argument step; the same queries give the same planner.

    Queries whose plan uses a tool of their own, or whose toolbox lacks one, are left out: what
    another request can do says nothing of this one's tools.

    Args:
        queries: With their gold plans.
        encoder: Embeds questions, here and when planning.
        settings: The defaults are those of the figures in the documentation.

    Raises:
        InputError: No query is left, or all have one plan.
        DependencyError: scikit-learn is not installed.
    """
    given = settings or ClassifierSettings()
    known = [query for query in queries if _of_the_toolbox(query)]
    if len({query.plan.tools for query in known}) < 2:
        raise InputError(
            f"Classifiers cannot be trained: of {len(queries)} queries, {len(known)} use the "
            "toolbox as it is, and these have fewer than two different plans. Give more queries."
        )
    vectors = encoder.embed([query.query for query in known])
    return ClassifierPlanner(
        PlanEnsemble.fit(known, vectors, given), ArgumentFinder.fit(known, given), encoder
    )


def _of_the_toolbox(query: AnnotatedQuery) -> bool:
    own = {alias(str(tool.get("name", ""))) for tool in query.record.tools_extra}
    return own.isdisjoint(query.plan.tools) and not query.record.tools_removed
