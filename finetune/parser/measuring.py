"""Measures a plan parser and its confidence on toolboxes that it was not trained on."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from casewright.finetune.baselines.question_features import fit_regression
from casewright.finetune.corpus import CorpusToolbox
from casewright.finetune.evaluation.verdict import judge, same_graph
from casewright.finetune.neighbours import present_fields
from casewright.planner import MAX_STEPS, AnnotatedQuery
from casewright.planner.parser.example_cases import PlanCase
from casewright.planner.parser.plan_reading import write_plan
from casewright.planner.parser.runtime import ParserRuntime
from casewright.planner.parser.weights import ParserCard, certainty
from casewright.tools import Toolbox

#: The score of a message for which the parser finds no plan, as a log-probability.
NO_PLAN_SCORE = -20.0


@dataclass(frozen=True, slots=True)
class PlanScore:
    """A plan's log-probability, and whether its tools and the whole plan are right."""

    score: float
    right_tools: bool
    right_plan: bool


def score_toolboxes(
    runtime: ParserRuntime, boxes: Sequence[CorpusToolbox], case_count: int, seed: int = 0
) -> Iterator[PlanScore]:
    """Yield the scores of messages; ``case_count`` other messages per toolbox are plan cases."""
    for box in boxes:
        shuffled = random.Random(f"{seed}:{box.name}").sample(box.queries, len(box.queries))
        cases, queries = shuffled[:case_count], shuffled[case_count:]
        yield from score_messages(runtime, box.toolbox, cases, queries)


def score_messages(
    runtime: ParserRuntime,
    toolbox: Toolbox,
    cases: Sequence[AnnotatedQuery],
    queries: Sequence[AnnotatedQuery],
) -> Iterator[PlanScore]:
    """Yield the score of the plan for each of ``queries``; ``cases`` are the plan cases."""
    plan_cases = [PlanCase(q.query, q.plan, present_fields(q.record.context)) for q in cases]
    prepared = runtime.prepare(toolbox, plan_cases)
    for query in queries:
        message, plans = runtime.plans(prepared, query.query, query.record.context, MAX_STEPS)
        if not plans:
            yield PlanScore(NO_PLAN_SCORE, False, False)
            continue
        plan = write_plan(plans[0].steps, prepared.schema, message)
        right_plan = same_graph(query, plan, arguments=True)
        yield PlanScore(plans[0].score, judge(query, plan).right_tools, right_plan)


def accuracy_figures(scores: Sequence[PlanScore], label: str) -> dict[str, float]:
    """Return the shares of plans with right tools, and of right plans; names end in ``label``."""
    flags = [(item.right_tools, item.right_plan) for item in scores]
    tools, plans = np.mean(flags, axis=0).tolist()
    return {f"right tools, {label}": round(tools, 4), f"whole plans, {label}": round(plans, 4)}


def fit_card(scores: Sequence[PlanScore]) -> ParserCard:
    """Return a ``ParserCard`` whose curve maps certainty to the chance that a plan is right."""
    certainties = np.array([[certainty(item.score)] for item in scores])
    slope, intercept = fit_regression(certainties, [item.right_plan for item in scores])
    return ParserCard(float(slope), float(intercept))


def ask_back_threshold(confidences: Iterable[Sequence[float]], share: float) -> float:
    """Return a threshold; at most ``share`` of each toolbox's confidences are below it.

    ``confidences`` has a sequence for each held-out toolbox. With a quantile over all toolboxes
    together, a planner would ask back too often for unusual toolboxes.
    """
    return min(float(np.quantile(values, share)) for values in confidences)
