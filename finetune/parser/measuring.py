"""The accuracy of a plan parser on toolboxes that it was not trained on, and its confidence."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from casewright.finetune.baselines.question_features import ClassifierSettings, fit_regression
from casewright.finetune.corpus import CorpusToolbox
from casewright.finetune.evaluation.verdict import judge, same_graph
from casewright.planner import MAX_STEPS, AnnotatedQuery
from casewright.planner.parser.example_cases import PlanCase
from casewright.planner.parser.runtime import ParserRuntime
from casewright.planner.parser.weights import ParserCard
from casewright.planner.parser.writing import written
from casewright.tools import Toolbox

#: Log-probabilities below this tell no more: the plan is wrong.
LEAST = -20.0


@dataclass(frozen=True, slots=True)
class Scored:
    """A plan's log-probability, and what of it is right."""

    score: float
    tools: bool
    whole: bool


def scored(
    runtime: ParserRuntime, boxes: Sequence[CorpusToolbox], cases: int, seed: int = 0
) -> Iterator[Scored]:
    """Yield how each message of some toolboxes was planned for.

    Args:
        runtime: The plan parser.
        boxes: The toolboxes.
        cases: Annotated messages of each that are known, drawn at random and not asked.
        seed: Of the draw.
    """
    for box in boxes:
        order = random.Random(f"{seed}:{box.name}").sample(box.queries, len(box.queries))
        yield from planned(runtime, box.toolbox, order[:cases], order[cases:])


def planned(
    runtime: ParserRuntime,
    toolbox: Toolbox,
    known: Sequence[AnnotatedQuery],
    asked: Sequence[AnnotatedQuery],
) -> Iterator[Scored]:
    """Yield how each of some messages was planned for, where others are known as cases."""
    prepared = runtime.prepare(toolbox, [_case(query) for query in known])
    for query in asked:
        message, result = runtime.plans(prepared, query.query, query.record.context, MAX_STEPS)
        if not result:
            yield Scored(LEAST, False, False)
            continue
        plan = written(result[0].steps, prepared.schema, message)
        whole = same_graph(query, plan, arguments=True)
        yield Scored(result[0].score, judge(query, plan).tools, whole)


def shares(found: Sequence[Scored], words: str) -> dict[str, float]:
    """Return the shares of right tools and whole plans, named with some words."""
    return {
        f"right tools, {words}": round(sum(result.tools for result in found) / len(found), 4),
        f"whole plans, {words}": round(sum(result.whole for result in found) / len(found), 4),
    }


def fitted(found: Sequence[Scored]) -> ParserCard:
    """Return a card with the logistic curve from log-probability to being right.

    Args:
        found: Some plans that are right, and some that are not.

    Raises:
        DependencyError: scikit-learn is not installed.
    """
    scores = np.array([[max(result.score, LEAST)] for result in found])
    slope, shift = fit_regression(scores, [result.whole for result in found], ClassifierSettings())
    return ParserCard(float(slope), float(shift))


def asking(found: Sequence[Scored], card: ParserCard, share: float) -> float:
    """Return the confidence below which a share of the messages falls."""
    return float(np.quantile([card.confidence(result.score) for result in found], share))


def _case(query: AnnotatedQuery) -> PlanCase:
    known = {name: value for name, value in query.record.context.items() if value is not None}
    return PlanCase(query.query, query.plan, known)
