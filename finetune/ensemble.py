"""Functions that fit the ensemble's constants (``EnsembleCard``) on held-out toolboxes.

The ensemble ranks the plans of the plan parser and of the language model.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from casewright.finetune.baselines.question_features import fit_regression
from casewright.finetune.corpus import CorpusToolbox
from casewright.finetune.evaluation import items_of
from casewright.finetune.evaluation.verdict import judge, same_graph
from casewright.finetune.parser.measuring import PlanScore, accuracy_figures, ask_back_threshold
from casewright.planner import AnnotatedQuery, Plan, ensemble
from casewright.planner.parser_planner import REPEATED_CONFIDENCE
from casewright.stores.progress import progress_bar

#: Candidate weights of the model's log-probability.
WEIGHTS = (0.5, 1.0, 1.5, 2.0, 3.0)
#: Maximum share of a toolbox's messages for which the planner asks back.
MAX_ASKED_BACK = 0.1


@dataclass(frozen=True, slots=True)
class MessagePlans:
    """The candidate plans for a message, and the index of the message's toolbox."""

    query: AnnotatedQuery
    candidates: Sequence[ensemble.CandidatePlan]
    toolbox_index: int

    def is_right(self, plan: Plan) -> bool:
        """Return True if a plan has the gold plan's graph and arguments."""
        return same_graph(self.query, plan, arguments=True)

    @property
    def parser_confidence(self) -> float:
        """The parser's confidence in its own plan."""
        return self.candidates[0].confidence or 0.0


class FittedCard(NamedTuple):
    """A card, and its figures on the held-out toolboxes."""

    card: ensemble.EnsembleCard
    figures: dict[str, float]


def candidate_plans(
    planner: ensemble.EnsemblePlanner, boxes: Sequence[CorpusToolbox]
) -> list[MessagePlans]:
    """Return the candidates for every message of the toolboxes."""
    messages = []
    with progress_bar("Ranking plans", sum(len(box.queries) for box in boxes)) as advance:
        for index, box in enumerate(boxes):
            for item in items_of(box.queries, box.toolbox):
                messages.append(MessagePlans(item.query, planner.candidates(item.request), index))
                advance(1)
    return messages


def fit_card(messages: Sequence[MessagePlans]) -> FittedCard:
    """Return the card whose weight gives the most right plans, with fitted curve and thresholds."""

    def count_right_plans(weight: float) -> int:
        return sum(
            item.is_right(ensemble.ranked_by(item.candidates, weight)[0][0]) for item in messages
        )

    weight = max(WEIGHTS, key=count_right_plans)
    # For each message, pairs of a plan and its score, the best first.
    rankings = [ensemble.ranked_by(item.candidates, weight) for item in messages]
    plans_by_planner = {
        "parser": [item.candidates[0].plan for item in messages],
        "model": [max(item.candidates, key=lambda c: c.model_score).plan for item in messages],
        "ensemble": [ranking[0][0] for ranking in rankings],
    }
    scores = {
        name: [
            PlanScore(
                score=0.0,
                right_tools=judge(item.query, plan).right_tools,
                right_plan=item.is_right(plan),
            )
            for item, plan in zip(messages, plans, strict=True)
        ]
        for name, plans in plans_by_planner.items()
    }
    ensemble_is_right = [score.right_plan for score in scores["ensemble"]]
    features = np.array([[ranking[0][1], ensemble.margin(ranking)] for ranking in rankings])
    score_weight, margin_weight, intercept = map(float, fit_regression(features, ensemble_is_right))
    # The thresholds are set below, from the confidence that the card computes.
    card = ensemble.EnsembleCard(weight, 1.0, intercept, score_weight, margin_weight, 0.0)
    confidences: dict[int, list[float]] = defaultdict(list)
    for item, (score, margin) in zip(messages, features.tolist(), strict=True):
        confidences[item.toolbox_index].append(card.confidence(score, margin))
    # The maximum is the confidence for a repeated question, which is planned without the model.
    parser_threshold = min(REPEATED_CONFIDENCE, _parser_threshold(messages, ensemble_is_right))
    asks_below = ask_back_threshold(confidences.values(), MAX_ASKED_BACK)
    figures: dict[str, float] = {}
    for name, plan_scores in scores.items():
        figures |= accuracy_figures(plan_scores, name)
    parser_share = np.mean([item.parser_confidence >= parser_threshold for item in messages])
    figures["planned by the parser alone"] = round(float(parser_share), 4)
    return FittedCard(replace(card, sure=parser_threshold, asks_below=asks_below), figures)


def _parser_threshold(messages: Sequence[MessagePlans], ensemble_is_right: Sequence[bool]) -> float:
    """Return the lowest confidence above which the parser is right as often as the ensemble."""
    # The lead: the parser's right plans minus the ensemble's, from the highest confidence down.
    lead, threshold = 0, 1.0
    pairs = zip(messages, ensemble_is_right, strict=True)
    for item, is_right in sorted(pairs, key=lambda pair: -pair[0].parser_confidence):
        lead += item.is_right(item.candidates[0].plan) - is_right
        if lead >= 0:
            threshold = item.parser_confidence
    return threshold
