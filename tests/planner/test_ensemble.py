"""The ensemble: plans of the plan parser and of a language model, ranked by both."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from casewright.errors import InputError
from casewright.planner import ModelPlanner, Plan, PlanRequest, parse_plan, render_prompt
from casewright.planner.decoding import Decoder, DecodingLimits
from casewright.planner.ensemble import EnsembleCard, EnsemblePlanner
from casewright.planner.grammar import PlanGrammar
from casewright.planner.language_model import LanguageModel
from casewright.planner.reuse import ScoredPlan
from tests.planner.helpers import SHOP
from tests.support.tiny_mistral import tiny_mistral

QUESTION = "How heavy is the wool tent that I bought?"
PLANS = [
    parse_plan(text)
    for text in (
        's1 = find(query="wool tent")',
        's1 = own(query="wool tent")\ns2 = fact(item_id=s1.item_id, query=question)',
        "s1 = find(query=question)",
    )
]
CARD = EnsembleCard(1.5, 0.9, 0.0, 0.1, 0.1, 0.2)


@pytest.fixture(scope="module")
def mistral() -> LanguageModel:
    return tiny_mistral(3, initializer_range=0.3)


@dataclass
class FixedParser:
    """A plan parser that returns the same plans and scores for every request."""

    plans: Sequence[Plan]
    scores: Sequence[float]
    confidence: float | None = 0.5

    def scored_plans(self, request: PlanRequest) -> Iterator[ScoredPlan]:
        for plan, score in zip(self.plans, self.scores, strict=True):
            yield ScoredPlan(plan, self.confidence, because="the parser's", score=score)


def plan_request(**more: object) -> PlanRequest:
    return PlanRequest(QUESTION, SHOP, {"product_id": "p1"}, max_steps=3, **more)  # type: ignore[arg-type]


def log_probability_alone(model: LanguageModel, plan: Plan) -> float:
    """Return the log-probability of a plan's tokens by a forward pass of the whole text."""
    prompt = model.encode(render_prompt(plan_request()))
    answer = [*model.encode_plan(str(plan)), model.ends[0]]
    prompt_tokens = [*prompt.head, *prompt.tail]
    with torch.no_grad():
        logits = model.network(torch.tensor([[*prompt_tokens, *answer]])).logits[0]
    token_scores = logits[len(prompt_tokens) - 1 : -1].float().log_softmax(-1)
    return float(token_scores[range(len(answer)), answer].sum())


def test_log_probabilities_of_a_tree_equal_those_of_each_text_alone(mistral: LanguageModel) -> None:
    texts = [[*mistral.encode_plan(str(plan)), mistral.ends[0]] for plan in PLANS]
    prompt = mistral.encode(render_prompt(plan_request()))
    limits = DecodingLimits(400, time.perf_counter() + 60)
    with Decoder(mistral).session(prompt.head, limits) as session:
        session.feed(prompt.tail)
        trees = [session.read_tree(order, limits) for order in (texts, texts[::-1])]
    expected = [log_probability_alone(mistral, plan) for plan in PLANS]
    for tree in trees:
        actual = [tree.log_probability(text) for text in texts]
        np.testing.assert_allclose(actual, expected, rtol=1e-4)


def test_tree_returns_greedy_tokens_only_if_it_contains_that_text(
    mistral: LanguageModel,
) -> None:
    prompt = mistral.encode(render_prompt(plan_request()))
    limits = DecodingLimits(400, time.perf_counter() + 60)
    grammar = PlanGrammar(mistral.grammar_tokenizer)
    with Decoder(mistral).session(prompt.head, limits) as session:
        session.feed(prompt.tail)
        others = [[*mistral.encode_plan(str(PLANS[1])), mistral.ends[0]]]
        missing = session.read_tree(others, limits).greedy_tokens(
            grammar.plan_matcher(plan_request()), mistral.ends
        )
        tokens = session.write(grammar.plan_matcher(plan_request()), limits=limits).tokens
    with Decoder(mistral).session(prompt.head, limits) as session:
        session.feed(prompt.tail)
        tree = session.read_tree([*others, [*tokens, mistral.ends[0]]], limits)
    assert missing is None
    assert tree.greedy_tokens(grammar.plan_matcher(plan_request()), mistral.ends) == [*tokens]


def test_model_ranks_its_own_plan_with_the_plans_of_the_parser(
    mistral: LanguageModel,
) -> None:
    model_plan = ModelPlanner(mistral).plan(plan_request()).plan
    scores = ModelPlanner(mistral).ranked(plan_request(), PLANS)
    assert [*scores] == [*PLANS, *([model_plan] if model_plan not in PLANS else [])]
    for plan, score in scores.items():
        assert score == pytest.approx(log_probability_alone(mistral, plan), rel=1e-4)


@pytest.mark.parametrize("likeliest", range(len(PLANS)))
def test_ensemble_takes_the_plan_with_the_highest_weighted_sum(
    mistral: LanguageModel, likeliest: int
) -> None:
    scores = [-1e6 * (number != likeliest) for number in range(len(PLANS))]
    result = EnsemblePlanner(FixedParser(PLANS, scores), lambda: ModelPlanner(mistral), CARD).plan(
        plan_request()
    )
    assert result.plan == PLANS[likeliest]
    assert result.planner == "ensemble"
    assert result.confidence is not None
    assert 0 <= result.confidence <= 1
    assert PLANS[likeliest] not in result.alternatives
    for plan in result.alternatives:
        plan_request().validate(plan)


def test_ensemble_does_not_load_the_model_when_the_parser_is_sure() -> None:
    def load() -> ModelPlanner:
        raise InputError("There is no model.")

    scores = [-0.1, -5.0, -6.0]
    sure = EnsemblePlanner(FixedParser(PLANS, scores, 0.95), load, CARD).plan(plan_request())
    assert (sure.plan, sure.fallback, sure.confidence) == (PLANS[0], "", 0.95)
    unsure = EnsemblePlanner(FixedParser(PLANS, scores, 0.5), load, CARD).plan(plan_request())
    assert (unsure.plan, unsure.fallback) == (PLANS[0], "ensemble: There is no model.")
    assert not unsure.asks_back
    doubtful = EnsemblePlanner(FixedParser(PLANS, scores, 0.1), load, CARD).plan(plan_request())
    assert (doubtful.plan, doubtful.asks_back) == (PLANS[0], True)


def test_ensemble_takes_the_parser_plan_when_the_model_times_out(mistral: LanguageModel) -> None:
    timed_out = ModelPlanner(mistral, seconds=0)
    result = EnsemblePlanner(FixedParser(PLANS, [-0.1, -5.0, -6.0]), lambda: timed_out, CARD).plan(
        plan_request()
    )
    assert result.plan == PLANS[0]
    assert "in time" in result.fallback


def test_ensemble_ranks_a_follow_up_by_the_model_alone(
    mistral: LanguageModel,
) -> None:
    follow_up = plan_request(history=[{"question": "Do you sell tents?", "answer": "Two."}])
    sure = FixedParser(PLANS, [0.0, -1e6, -1e6], 0.99)
    result = EnsemblePlanner(sure, lambda: ModelPlanner(mistral), CARD).plan(follow_up)
    scores = ModelPlanner(mistral).ranked(follow_up, PLANS)
    assert result.plan == max(scores, key=lambda plan: scores[plan])


def test_ensemble_returns_the_model_plan_when_the_parser_has_none(mistral: LanguageModel) -> None:
    planner = EnsemblePlanner(FixedParser([], []), lambda: ModelPlanner(mistral), CARD)
    assert planner.plan(plan_request()).plan == ModelPlanner(mistral).plan(plan_request()).plan
    assert asyncio.run(planner.aplan(plan_request())).plan == planner.plan(plan_request()).plan
