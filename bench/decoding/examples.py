"""What plan cases in the prompt cost, and what they are worth where the model is trained."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from casewright.bench.decoding.systems import Made, Systems
from casewright.bench.decoding.tasks import Task
from casewright.bench.decoding.turns import slow_progress, take_turns
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
#: Share of the relevance in picking them, and of the similarity in that; as ``ModelPlanner`` does.
LAMBDA_D, LAMBDA_B = 0.75, 0.95


@dataclass(frozen=True, slots=True)
class Exampled:
    """What came of prompts with so many plan cases.

    Attributes:
        count: How many plan cases.
        prompting_ms: Milliseconds a prompt took, picking its plan cases included.
        made: What was written behind them.
    """

    count: int
    prompting_ms: float
    made: Sequence[Made]


def prompt_of(
    model: LanguageModel, request: PlanRequest, store: CaseStore, count: int
) -> PromptTokens:
    """Return a request's prompt with so many plan cases of a store."""
    found = similar_plans(store, request, count, lambda_d=LAMBDA_D, lambda_b=LAMBDA_B)
    return model.encode(render_prompt(request, found))


def write_with_examples(
    model: LanguageModel,
    systems: Systems,
    tasks: Sequence[Task],
    store: CaseStore,
    repeats: int,
    *,
    warmed: bool,
) -> list[Exampled]:
    """Write the tasks' plans behind prompts with more and more plan cases, in turn.

    Args:
        model: Writes.
        systems: By whose decoder.
        tasks: Whose plans.
        store: The plan cases.
        repeats: How often.
        warmed: Whether all of it is written once before, untimed.
    """
    prompts: dict[int, list[PromptTokens]] = {}
    milliseconds = {}
    for count in COUNTS:
        started = time.perf_counter()
        prompts[count] = [prompt_of(model, task.request, store, count) for task in tasks]
        milliseconds[count] = (time.perf_counter() - started) * 1000 / len(tasks)

    def writing(own: Sequence[PromptTokens]) -> Callable[[int], Made]:
        return lambda place: systems.own(tasks[place], own[place])

    by_count: Mapping[str, Callable[[int], Made]] = {
        str(count): writing(own) for count, own in prompts.items()
    }
    first = by_count if warmed else ()
    made = take_turns(by_count, range(len(tasks)), repeats, "Plan cases in the prompt", first)
    return [Exampled(count, milliseconds[count], made[str(count)]) for count in COUNTS]


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
            planner = ModelPlanner(
                model,
                plan_cases=store,
                examples=count,
                lambda_d=LAMBDA_D,
                lambda_b=LAMBDA_B,
                seconds=600,
            )
            verdicts = []
            for query in queries:
                result = planner.plan(query.record.request(toolbox))
                verdicts.append(judge(query, result.plan, result.milliseconds))
                advance(1)
            shares[count] = share_right(verdicts)
    return shares
