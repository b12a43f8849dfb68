"""Fitting of the ensemble's constants to candidate plans of messages."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from casewright.finetune.ensemble import MessagePlans, fit_card
from casewright.planner import AnnotatedQuery, parse_plan
from casewright.planner.ensemble import MAX_MARGIN, CandidatePlan, EnsembleCard

GOLD, OTHER = parse_plan("s1 = find(query=question)"), parse_plan("s1 = no_evidence()")


def messages() -> list[MessagePlans]:
    """Return plans of messages: the parser is sure and right, or the model is right, or neither."""
    query = AnnotatedQuery.read({"query": "a mill", "plan": str(GOLD), "class": "find"})
    rng, results = random.Random(0), []
    for number in range(80):
        noise = rng.random()
        if number % 2:
            pair = [CandidatePlan(GOLD, -0.1, -0.2 - noise, 0.9)]
            pair.append(CandidatePlan(OTHER, -9.0, -9.0, 0.1))
        else:
            # The parser prefers the wrong plan by less than the model prefers the right one.
            pair = [CandidatePlan(OTHER, -1.0 - noise, -6.0, 0.4)]
            pair.append(CandidatePlan(GOLD, -4.0 - noise, -1.0, None))
        results.append(MessagePlans(query, pair, number // 20))
    wrong_plans = [CandidatePlan(OTHER, -9.0, -9.0, 0.1)]
    return [*results, *(MessagePlans(query, wrong_plans, toolbox) for toolbox in range(4))]


def test_fitted_weight_gives_the_most_right_plans() -> None:
    card, figures = fit_card(messages())
    assert card.weight >= 1.0
    assert figures["whole plans, ensemble"] == pytest.approx(80 / 84, abs=1e-4)
    assert figures["whole plans, parser"] == pytest.approx(40 / 84, abs=1e-4)


def test_fitted_threshold_uses_the_parser_alone_only_where_it_is_right() -> None:
    card, figures = fit_card(messages())
    assert 0.4 < card.sure <= 0.9
    assert figures["planned by the parser alone"] == pytest.approx(40 / 84, abs=1e-4)


def test_fitted_confidence_is_low_for_a_plan_that_both_find_unlikely() -> None:
    card, _ = fit_card(messages())
    likely = card.confidence(-0.1 - 0.5 * card.weight, MAX_MARGIN)
    assert card.confidence(-9.0 - 9.0 * card.weight, MAX_MARGIN) < 0.5 < likely


def test_ensemble_card_is_restored_from_its_file(tmp_path: Path) -> None:
    card, _ = fit_card(messages())
    card.write(tmp_path / "card.json")
    assert EnsembleCard.read(tmp_path / "card.json") == card
