"""What plan cases in the prompt cost, and what they are worth where the model is trained."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from casewright.bench.decoding.systems import OWN
from casewright.bench.decoding.tasks import Task
from casewright.bench.decoding.turns import slow_progress
from casewright.bench.planner import share_right
from casewright.finetune.evaluation import judge
from casewright.planner import AnnotatedQuery, render_prompt
from casewright.planner.model_planner import ModelPlanner
from casewright.planner.plan_cases import similar_plans
from casewright.stores import CaseStore

if TYPE_CHECKING:
    from casewright.planner import PlanRequest
    from casewright.planner.language_model import LanguageModel, PromptTokens
    from casewright.tools import Toolbox

#: How many plan cases prompts have.
COUNTS = (0, 1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class Exampled:
    """Prompts with so many plan cases.

    Attributes:
        count: How many.
        prompts: A prompt a task.
        prompting_ms: Milliseconds that one took, picking its plan cases included.
    """

    count: int
    prompts: Sequence[PromptTokens]
    prompting_ms: float

    @property
    def name(self) -> str:
        """How the decoder is called behind these prompts."""
        return f"{OWN}, {self.count} plan cases"


def prompt_of(
    model: LanguageModel, request: PlanRequest, store: CaseStore, count: int
) -> PromptTokens:
    """Return a request's prompt with so many plan cases of a store."""
    found = similar_plans(store, request, count)
    return model.encode(render_prompt(request, found))


def with_examples(model: LanguageModel, tasks: Sequence[Task], store: CaseStore) -> list[Exampled]:
    """Make the tasks' prompts with more and more plan cases of a store."""
    made = []
    for count in COUNTS:
        started = time.perf_counter()
        prompts = [prompt_of(model, task.request, store, count) for task in tasks]
        spent = (time.perf_counter() - started) * 1000 / len(tasks)
        made.append(Exampled(count, prompts, spent))
    return made


def right_tools(
    model: LanguageModel,
    toolbox: Toolbox,
    queries: Sequence[AnnotatedQuery],
    store: CaseStore,
) -> dict[int, float]:
    """Return the share of a trained model's plans with the right tools, by number of plan cases.

    Args:
        model: Plans by its own choice.
        toolbox: The tools.
        queries: What is asked: queries that the model did not learn from.
        store: The plan cases.
    """
    shares = {}
    with slow_progress("Planning", len(COUNTS) * len(queries)) as advance:
        for count in COUNTS:
            planner = ModelPlanner(model, plan_cases=store, examples=count, seconds=600)
            verdicts = []
            for query in queries:
                result = planner.plan(query.record.request(toolbox))
                verdicts.append(judge(query, result.plan, result.milliseconds))
                advance(1)
            shares[count] = share_right(verdicts)
    return shares
