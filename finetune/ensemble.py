"""Fitting of the constants of the ensemble (plan parser, language model) on held-out toolboxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from casewright.finetune.baselines.question_features import fit_regression
from casewright.finetune.corpus import CorpusToolbox
from casewright.finetune.evaluation import items_of
from casewright.finetune.evaluation.verdict import judge, same_graph
from casewright.planner import AnnotatedQuery, Plan
from casewright.planner.ensemble import (
    CandidatePlan,
    EnsembleCard,
    EnsemblePlanner,
    margin,
    ranked_by,
)
from casewright.stores.progress import progress_bar

#: Candidate weights of the model's log-probability.
WEIGHTS = (0.5, 1.0, 1.5, 2.0, 3.0)
#: Maximum share of a toolbox's messages for which the planner asks back.
ASKED_BACK = 0.1


@dataclass(frozen=True, slots=True)
class Ranking:
    """The candidate plans for a message, and the number of the message's toolbox."""

    query: AnnotatedQuery
    candidates: Sequence[CandidatePlan]
    toolbox: int

    def right(self, plan: Plan) -> bool:
        """Return true for the gold plan."""
        return same_graph(self.query, plan, arguments=True)

    @property
    def parser_confidence(self) -> float:
        """The parser's confidence in its own plan."""
        return self.candidates[0].confidence or 0.0


class FittedCard(NamedTuple):
    """A card, and its figures on the held-out toolboxes."""

    card: EnsembleCard
    figures: dict[str, float]


def rankings(planner: EnsemblePlanner, boxes: Sequence[CorpusToolbox]) -> list[Ranking]:
    """Return the candidates for every message of the toolboxes, without plan cases."""
    results = []
    with progress_bar("Ranking plans", sum(len(box.queries) for box in boxes)) as advance:
        for number, box in enumerate(boxes):
            for item in items_of(box.queries, box.toolbox):
                results.append(Ranking(item.query, planner.candidates(item.request), number))
                advance(1)
    return results


def choose(rankings: Sequence[Ranking]) -> FittedCard:
    """Return a card: the weight with the most right plans, the logistic curve, both thresholds."""

    def whole_plans(weight: float) -> int:
        return sum(each.right(ranked_by(each.candidates, weight)[0][0]) for each in rankings)

    weight = max(WEIGHTS, key=whole_plans)
    ranked = [ranked_by(each.candidates, weight) for each in rankings]
    right = [each.right(plans[0][0]) for each, plans in zip(rankings, ranked, strict=True)]
    features = np.array([[plans[0][1], margin(plans)] for plans in ranked])
    score, margin_, intercept = map(float, fit_regression(features, right))
    curve = EnsembleCard(weight, 1.0, intercept, score, margin_, 0.0)
    confidences = [curve.confidence(*row) for row in features.tolist()]
    by_toolbox: dict[int, list[float]] = {}
    for each, confidence in zip(rankings, confidences, strict=True):
        by_toolbox.setdefault(each.toolbox, []).append(confidence)
    # With one quantile over all messages, those of an unusual toolbox would be asked back often.
    asks_below = min(float(np.quantile(values, ASKED_BACK)) for values in by_toolbox.values())
    card = EnsembleCard(weight, _sure(rankings, right), intercept, score, margin_, asks_below)
    plans_of = {
        "parser": [each.candidates[0].plan for each in rankings],
        "model": [max(each.candidates, key=lambda c: c.model).plan for each in rankings],
        "ensemble": [plans[0][0] for plans in ranked],
    }
    figures = {}
    for name, plans in plans_of.items():
        pairs = [*zip(rankings, plans, strict=True)]
        tools = np.mean([judge(each.query, plan).tools for each, plan in pairs])
        whole = np.mean([each.right(plan) for each, plan in pairs])
        figures[f"right tools, {name}"] = round(float(tools), 4)
        figures[f"whole plans, {name}"] = round(float(whole), 4)
    by_parser = [each.parser_confidence >= card.sure for each in rankings]
    figures["planned by the parser alone"] = round(float(np.mean(by_parser)), 4)
    return FittedCard(card, figures)


def _sure(rankings: Sequence[Ranking], right: Sequence[bool]) -> float:
    """Return the lowest confidence above which the parser's plans are as often right as these.

    ``right`` are the flags of the ensemble's plans.
    """
    gain, lowest = 0, 1.0
    pairs = zip(rankings, right, strict=True)
    for each, is_right in sorted(pairs, key=lambda pair: -pair[0].parser_confidence):
        gain += each.right(each.candidates[0].plan) - is_right
        if gain >= 0:
            lowest = each.parser_confidence
    return lowest
