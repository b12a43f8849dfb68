"""A whole plan in one call beside the step-by-step agent, with one model."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from casewright.bench.decoding.bandwidth import measure_bandwidth, weight_bytes
from casewright.bench.decoding.measure import check_shape, no_tasks
from casewright.bench.decoding.models import ModelChoice, described
from casewright.bench.decoding.tasks import PromptShape, shuffled_queries
from casewright.bench.decoding.tokenizer import tokenizer_texts
from casewright.bench.decoding.turns import take_turns
from casewright.bench.latency.questions import QuestionWriter
from casewright.bench.latency.results import by_steps, draw_latency, figures_of, rows_of
from casewright.bench.latency.step_agent import CHARACTERS, ROWS
from casewright.bench.latency.systems import Systems
from casewright.bench.planner import UncachedQuestions
from casewright.bench.report import Report
from casewright.planner.grammar import PlanGrammar
from casewright.stores import default_encoder
from casewright.stores.paths import data_folder
from casewright.stores.progress import note


@dataclass(frozen=True, slots=True)
class LatencyTrial:
    """What the bench is run with.

    Attributes:
        domain: Whose annotated queries are asked, and whose tools are called.
        model: Who writes.
        plans: Questions for each number of steps.
        repeats: How often each is asked.
        shape: Lengths that prompts are brought to; as they are by default.
        plan_tokens: Fewest and most tokens of a plan.
        seed: Draws the questions.

    Raises:
        InputError: A trained model is to read prompts that are cut.
    """

    domain: str = "shopping"
    model: ModelChoice = field(default_factory=ModelChoice)
    plans: int = 5
    repeats: int = 1
    shape: PromptShape | None = None
    plan_tokens: tuple[int, int] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_shape(self.shape, self.model)


def measure_latency(trial: LatencyTrial) -> Report:
    """Ask the same questions by one call and by the agent, with the domain's own tools.

    Raises:
        InputError: The model cannot be had, or the domain has no queries with such plans.
    """
    from casewright.domains import find_domain

    domain = find_domain(trial.domain)
    trial.model.check_device()
    load = os.getloadavg()
    # What tools are asked is encoded each time, as it would be for a new question.
    encoder = UncachedQuestions(default_encoder())
    opened = domain.open(data_folder() / domain.name, encoder, False)
    try:
        toolbox, queries = opened.toolbox, domain.queries()
        model = trial.model.open(tokenizer_texts(toolbox, queries))
        note(f"Planning with {model.name} on {model.device}.")
        finding, grammar = (PlanGrammar(model.grammar_tokenizer) for _ in range(2))
        writer = QuestionWriter(model, finding, toolbox, domain.scopes)
        asked = shuffled_queries(queries, trial.seed)
        questions = list(writer.questions(asked, trial.plans, trial.plan_tokens))
        if not questions:
            raise no_tasks(trial.domain, trial.plan_tokens)
        named = Systems(model, grammar, toolbox, trial.shape).named()
        warmed = list(named) if model.device.type == "cuda" else ()
        bandwidth = measure_bandwidth(model.device)
        looked = take_turns(named, questions, trial.repeats, "Asking", warmed)
    finally:
        opened.close()
    # What it is at best: other work may have met one of the two.
    bandwidth = max(bandwidth, measure_bandwidth(model.device))
    parts = by_steps(questions, looked)
    return Report(
        bench="latency",
        settings={
            "domain": domain.name,
            **described(model),
            "load_average_at_start": round(load[0], 2),
            "plans_of_each_number_of_steps": trial.plans,
            "repeats": trial.repeats,
            "prompts_brought_to": trial.shape and [trial.shape.head, trial.shape.tail],
            "plan_tokens": trial.plan_tokens,
            "results_shown_to_the_agent": {"rows": ROWS, "characters": CHARACTERS},
            "seed": trial.seed,
        },
        figures={
            **figures_of(questions, looked, parts),
            "memory_gb_per_s": bandwidth / 1e9,
            "weights_gb_per_model_step": weight_bytes(model) / 1e9,
        },
        rows=rows_of(parts, 1000 * weight_bytes(model) / bandwidth),
        notes=_NOTES,
        draw=lambda axes: draw_latency(axes, parts),
    )


_NOTES = (
    "The same model, grammar and decoder for all; the prompt's head is kept, forced tokens take no "
    "model step. The plans are those of annotated queries whose every step finds something: the "
    "network's logits are computed at each step, and a script then chooses what goes on with the "
    "plan. The systems take turns question by question, in one process.",
    "step agent: asked for one step at a time, sees what each found, until it writes that it is "
    "done; it keeps its conversation's key/value states. Stateless: every call reads all behind "
    "the head anew.",
    "prompt_tokens are read behind the head; model_ms hold the grammars too; over_one_call: the "
    "median of their ratios question by question. One call's tools run as the graph runs them, at "
    "the same time where they can; the agent's one after the other. memory_limit_ms: the weights "
    "that the model steps read, over the measured bandwidth.",
)
