"""Fits the constants of the ensemble planner (``EnsembleCard``) on held-out toolboxes.

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

#: Weights of the language model's log-probability that ``fit_card`` tries.
WEIGHTS = (0.5, 1.0, 1.5, 2.0, 3.0)
#: The planner asks back for at most this share of a toolbox's messages.
MAX_ASKED_BACK = 0.1


@dataclass(frozen=True, slots=True)
class MessagePlans:
    """A message's candidate plans, the parser's first, and the index of the message's toolbox."""

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
    """A card, and figures of the parser, model and ensemble on the held-out toolboxes."""

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
    """Return a card with the weight that gives the most right plans, and the card's figures."""

    def count_right_plans(weight: float) -> int:
        return sum(
            message.is_right(ensemble.ranked_by(message.candidates, weight)[0][0])
            for message in messages
        )

    weight = max(WEIGHTS, key=count_right_plans)
    # For each message, pairs of a plan and its score, the best first.
    rankings = [ensemble.ranked_by(message.candidates, weight) for message in messages]
    plans_by_planner = {
        "parser": [message.candidates[0].plan for message in messages],
        "model": [max(m.candidates, key=lambda c: c.model_score).plan for m in messages],
        "ensemble": [ranking[0][0] for ranking in rankings],
    }
    # No figure below uses the field ``score`` of a ``PlanScore``.
    plan_scores = {
        name: [
            PlanScore(0.0, judge(message.query, plan).right_tools, message.is_right(plan))
            for message, plan in zip(messages, plans, strict=True)
        ]
        for name, plans in plans_by_planner.items()
    }
    ensemble_is_right = [plan_score.right_plan for plan_score in plan_scores["ensemble"]]
    features = np.array([[ranking[0][1], ensemble.margin(ranking)] for ranking in rankings])
    score_weight, margin_weight, intercept = map(float, fit_regression(features, ensemble_is_right))
    # 1.0 and 0.0 are placeholders for the thresholds, which follow from the card's confidences.
    card = ensemble.EnsembleCard(weight, 1.0, intercept, score_weight, margin_weight, 0.0)
    confidences: dict[int, list[float]] = defaultdict(list)
    for message, (score, margin) in zip(messages, features.tolist(), strict=True):
        confidences[message.toolbox_index].append(card.confidence(score, margin))
    # With a higher threshold, repeated questions would not be planned by the parser alone.
    parser_threshold = min(REPEATED_CONFIDENCE, _parser_threshold(messages, ensemble_is_right))
    asks_below = ask_back_threshold(confidences.values(), MAX_ASKED_BACK)
    figures: dict[str, float] = {}
    for name, scores in plan_scores.items():
        figures |= accuracy_figures(scores, name)
    parser_share = np.mean([m.parser_confidence >= parser_threshold for m in messages])
    figures["planned by the parser alone"] = round(float(parser_share), 4)
    return FittedCard(replace(card, sure=parser_threshold, asks_below=asks_below), figures)


def _parser_threshold(messages: Sequence[MessagePlans], ensemble_is_right: Sequence[bool]) -> float:
    """Return the lowest confidence from which the parser is right as often as the ensemble."""
    # The lead is the number of the parser's right plans minus the number of the ensemble's. The
    # messages are in order of the parser's confidence, the highest first.
    lead, threshold = 0, 1.0
    pairs = zip(messages, ensemble_is_right, strict=True)
    for message, is_right in sorted(pairs, key=lambda pair: -pair[0].parser_confidence):
        lead += message.is_right(message.candidates[0].plan) - is_right
        if lead >= 0:
            threshold = message.parser_confidence
    return threshold
