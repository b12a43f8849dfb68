"""The plans of a model with random weights are valid."""

from __future__ import annotations

import random

from casewright.planner import ModelPlanner, validate_plan
from casewright.planner.language_model import LanguageModel
from tests.support.random_requests import random_request, random_toolbox
from tests.support.tiny_mistral import tiny_mistral

MODELS, TOOLBOXES, QUESTIONS = 5, 50, 40


def model(seed: int) -> LanguageModel:
    """Return a random Mistral whose logits differ enough that it does not repeat one token."""
    return tiny_mistral(seed, layers=1, initializer_range=0.3)


def test_2000_plans_of_random_models_for_random_requests_are_valid() -> None:
    planners = [
        ModelPlanner(model(seed), batch=QUESTIONS, tokens=4096, seconds=120)
        for seed in range(MODELS)
    ]
    tool_sequences = set()
    for seed in range(TOOLBOXES):
        draw = random.Random(seed)
        toolbox = random_toolbox(draw)
        requests = [random_request(draw, toolbox, draw.randint(1, 4)) for _ in range(QUESTIONS)]
        results = planners[seed % MODELS].plan_many(requests)
        for request, result in zip(requests, results, strict=True):
            assert not result.fallback, (seed, request, result.fallback)
            validate_plan(
                result.plan,
                toolbox,
                question=request.question,
                context=request.context,
                max_steps=request.max_steps,
            )
            tool_sequences.add(result.plan.tools)
    # Models that repeat one plan would test little.
    assert len(tool_sequences) > 30
