"""Tokens a second and memory of training an adapter: a recipe that ships beside TRL's defaults."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from statistics import median
from typing import Any

from casewright.bench.decoding.models import ModelChoice
from casewright.bench.decoding.tasks import shuffled_queries
from casewright.bench.decoding.tokenizer import tokenizer_texts
from casewright.bench.decoding.turns import slow_progress
from casewright.bench.report import Report
from casewright.bench.training.child import WARM, Task, as_json
from casewright.bench.training.systems import DEFAULTS, RECIPE, SAME_ADAPTER, SYSTEMS
from casewright.errors import InputError
from casewright.finetune.examples.example import PLAN_TASK, TrainingExample
from casewright.finetune.recipe.recipe import Recipe
from casewright.finetune.recipe.shipped import find_recipe
from casewright.planner import render_prompt
from casewright.stores import default_encoder
from casewright.stores.paths import data_folder

#: Steps that the recipe makes at least, where there are examples enough.
LEAST_STEPS = 4
#: Losses of one model on the same examples: apart by no more than rounding in 16 bits.
SAME_LOSS = 0.02


@dataclass(frozen=True, slots=True)
class TrainingTrial:
    """What the bench is run with.

    Attributes:
        size: Of the random network: ``tiny``, ``100m`` or ``7b``.
        recipe: A recipe's file, or the name of one that ships.
        examples: How many are trained on, once.
        repeats: How often each system trains.
        device: Where; a GPU where there is one.
        seed: Draws examples and weights.

    Raises:
        InputError: There is no such size or device.
    """

    size: str = "100m"
    recipe: str = "mistral-7b-80gb"
    examples: int = 32
    repeats: int = 1
    device: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        ModelChoice(size=self.size, device=self.device).check_device()


def measure_training(trial: TrainingTrial) -> Report:
    """Let every system train once over the same examples, each in a process of its own.

    Raises:
        InputError: The recipe cannot be used, trains all weights, or a training failed.
    """
    from casewright.domains import find_domain

    file = find_recipe(trial.recipe)
    recipe = Recipe.read(file, files=False)
    if recipe.lora.method == "full":
        raise InputError(f"{trial.recipe} trains all weights. Give a recipe with an adapter.")
    domain = find_domain("shopping")
    opened = domain.open(data_folder() / domain.name, default_encoder(), False)
    toolbox, queries = opened.toolbox, domain.queries()
    opened.close()
    chosen = shuffled_queries(queries, trial.seed)[: trial.examples]
    examples = [
        TrainingExample(
            str(query.record.id),
            PLAN_TASK,
            str(query.record.id),
            render_prompt(query.record.request(toolbox)),
            str(query.plan),
        ).to_row()
        for query in chosen
    ]
    # About four prompts of the shop are a row of 4,096 tokens.
    rows = len(examples) // (4 if recipe.training.packing else recipe.training.batch_per_device)
    accumulation = max(1, min(recipe.training.gradient_accumulation, rows // LEAST_STEPS))
    load = os.getloadavg()[0]
    texts = list(tokenizer_texts(toolbox, queries))
    made: dict[str, list[dict[str, Any]]] = {name: [] for name in SYSTEMS}
    with slow_progress("Training", trial.repeats * len(SYSTEMS)) as advance:
        for repeat in range(trial.repeats):
            # None is always first.
            for place in range(len(SYSTEMS)):
                name = SYSTEMS[(place + repeat) % len(SYSTEMS)]
                task = Task(
                    system=name,
                    recipe=str(file),
                    accumulation=accumulation,
                    size=trial.size,
                    device=trial.device,
                    seed=trial.seed,
                    texts=texts,
                    examples=examples,
                )
                made[name].append(_trained(task))
                advance(1)
    _check_same(made)
    return Report(
        bench="training",
        settings={
            "recipe": trial.recipe,
            "model": f"random-mistral-{trial.size}",
            "parameters_with_adapter": made[RECIPE][0]["parameters"],
            "examples": made[RECIPE][0]["examples"],
            "tokens": made[RECIPE][0]["tokens_given"],
            "repeats": trial.repeats,
            "steps_not_timed": WARM,
            "load_average_at_start": round(load, 2),
            "seed": trial.seed,
            "systems": {name: runs[0]["settings"] for name, runs in made.items()},
        },
        figures=_figures(made),
        rows=[_row(name, runs) for name, runs in made.items()],
        notes=_NOTES,
    )


def _trained(task: Task) -> dict[str, Any]:
    ran = subprocess.run(
        [sys.executable, "-m", "casewright.bench.training.child"],
        input=as_json(task),
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        why = (ran.stderr.strip().splitlines() or [f"it ended with {ran.returncode}"])[-1]
        raise InputError(
            f"Training by {task.system} failed: {why}. Take fewer --examples, or a smaller --size."
        )
    told = json.loads(ran.stdout.splitlines()[-1])
    assert isinstance(told, dict)
    return told


def _check_same(made: dict[str, list[dict[str, Any]]]) -> None:
    """Refuse to compare systems that do not train one model on the same examples."""
    runs = [run for ran in made.values() for run in ran]
    losses = [run["loss_before"] for run in runs]
    same = len({(run["examples"], run["tokens_given"], run["tokens"]) for run in runs}) == 1
    if not same or max(losses) - min(losses) > SAME_LOSS:
        raise InputError(
            "The systems did not train on the same examples, and cannot be compared: tokens "
            f"{[run['tokens'] for run in runs]}, losses before {losses}."
        )


def _figures(made: dict[str, list[dict[str, Any]]]) -> dict[str, float]:
    speed = {name: median(run["tokens_per_s"] for run in runs) for name, runs in made.items()}
    memory = {name: median(run["peak_memory_mib"] for run in runs) for name, runs in made.items()}
    names = {RECIPE: "recipe", DEFAULTS: "trl_defaults", SAME_ADAPTER: "trl_same_adapter"}
    return {
        **{f"tokens_per_s_{short}": speed[name] for name, short in names.items()},
        **{f"peak_memory_mib_{short}": memory[name] for name, short in names.items()},
        "ratio_tokens_per_s_recipe_over_trl_defaults": speed[RECIPE] / speed[DEFAULTS],
        "ratio_tokens_per_s_recipe_over_trl_same_adapter": speed[RECIPE] / speed[SAME_ADAPTER],
        "ratio_memory_recipe_over_trl_defaults": memory[RECIPE] / memory[DEFAULTS],
        "ratio_memory_recipe_over_trl_same_adapter": memory[RECIPE] / memory[SAME_ADAPTER],
    }


def _row(name: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    first = runs[0]
    return {
        "system": name,
        "tokens a second": round(median(run["tokens_per_s"] for run in runs), 1),
        "peak memory, MiB": round(median(run["peak_memory_mib"] for run in runs)),
        "steps": first["steps"],
        "trained weights": first["parameters_trained"],
        "loss before": round(first["loss_before"], 3),
    }


_NOTES = (
    "All systems train the same random weights once over the same examples: the shop's annotated "
    "queries as prompts and plans, the loss of the plans' tokens. Each has a process of its own.",
    "Tokens are those of prompts and plans, without padding. The first step is not timed.",
    "TRL's defaults are SFTConfig() and LoraConfig(), but for max_length: by default examples "
    "of more than 1,024 tokens would be cut. LoraConfig() adapts two layers of each block, the "
    "recipe all linear ones: the third system tells what that costs.",
    "Memory is the GPU's peak in training, or on the CPU that of the whole process.",
)
