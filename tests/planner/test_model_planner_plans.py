"""The plans of a model with random weights are valid."""

from __future__ import annotations

import random

from casewright.planner import ModelPlanner, validate_plan
from casewright.planner.language_model import LanguageModel
from tests.support.random_requests import random_request, random_toolbox
from tests.support.tiny_mistral import tiny_mistral

MODELS, TOOLBOXES, QUESTIONS = 5, 50, 40


def model(seed: int) -> LanguageModel:
    """Return a random Mistral whose logits are far apart: it does not only repeat itself."""
    return tiny_mistral(seed, layers=1, initializer_range=0.3)


def test_2000_plans_of_random_models_for_random_requests_are_2000_valid_plans() -> None:
    planners = [
        ModelPlanner(model(seed), batch=QUESTIONS, tokens=4096, seconds=120)
        for seed in range(MODELS)
    ]
    valid, shapes = 0, set()
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
            valid += 1
            shapes.add(result.plan.tools)
    assert valid == TOOLBOXES * QUESTIONS == 2000
    # They are 2,000 plans, not one.
    assert len(shapes) > 30
