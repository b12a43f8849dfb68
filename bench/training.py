"""Tokens a second and memory of training an adapter: a shipped recipe beside TRL's defaults."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from casewright.bench.harness import read_ground, synchronize, take_turns
from casewright.bench.models import ModelChoice, tokenizer_texts
from casewright.bench.report import Report
from casewright.bench.scripts import shuffled_queries
from casewright.errors import InputError
from casewright.finetune.example import PLAN_TASK, TrainingExample
from casewright.finetune.recipe.recipe import Recipe
from casewright.finetune.recipe.shipped import find_recipe
from casewright.finetune.training.log import silence
from casewright.finetune.training.placement import Placement, find_placement
from casewright.finetune.training.tokens import TokenRow, token_rows
from casewright.finetune.training.trainer import (
    lora_config,
    make_trainer,
    mean_token_loss,
    peak_memory,
)
from casewright.planner import render_prompt

if TYPE_CHECKING:
    from trl.trainer.sft_trainer import SFTTrainer

    from casewright.planner.language_model import LanguageModel

#: The systems with their names in figures; the third isolates the effect of the adapter's size.
RECIPE, DEFAULTS = "the recipe", "TRL's defaults"
SAME_ADAPTER = "TRL's defaults, the recipe's adapter"
SYSTEMS = {RECIPE: "recipe", DEFAULTS: "trl_defaults", SAME_ADAPTER: "trl_same_adapter"}
#: Untimed steps: the first ones reserve memory, and choose kernels.
WARM = 1
#: Examples of the initial loss, and its largest difference between systems: rounding to 16 bits.
COMPARED, SAME_LOSS = 8, 0.02
#: The fewest steps of the recipe, given enough examples.
LEAST_STEPS = 4
#: The measurements of each training by system.
Runs = Mapping[str, Sequence[Mapping[str, Any]]]
_NOTES = (
    "All systems train the same random weights once over the same examples: the shop's annotated "
    "queries as prompts and plans, the loss of the plans' tokens. Each has a process of its own.",
    "Tokens are those of prompts and plans, without padding. The first step is not timed.",
    "TRL's defaults are SFTConfig() and LoraConfig(), but for max_length: by default examples "
    "of more than 1,024 tokens would be cut. LoraConfig() adapts two layers of each block, the "
    "recipe all linear ones: the third system tells what that costs.",
    "Memory is the GPU's peak in training, or on the CPU that of the whole process.",
)


@dataclass(frozen=True, slots=True)
class TrainingTrial:
    """The options of the command."""

    size: str = "100m"
    recipe: str = "mistral-7b-80gb"
    examples: int = 32
    repeats: int = 1
    device: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        self.model().check_device()

    def model(self, dtype: str | None = None) -> ModelChoice:
        """Return the random model in a number format."""
        return ModelChoice(size=self.size, device=self.device, dtype=dtype, seed=self.seed)


def measure_training(trial: TrainingTrial) -> Report:
    """Train once over the same examples by every system, each in a process of its own.

    Raises:
        InputError: The recipe cannot be read, or a training failed.
    """
    recipe = Recipe.read(find_recipe(trial.recipe), files=False)
    ground = read_ground("shopping")
    toolbox, queries = ground.toolbox, ground.domain.queries()
    examples = [
        TrainingExample(
            str(query.record.id),
            PLAN_TASK,
            str(query.record.id),
            render_prompt(query.record.request(toolbox)),
            str(query.plan),
        )
        for query in shuffled_queries(queries, trial.seed)[: trial.examples]
    ]
    # About four prompts of the shop are a row of 4,096 tokens.
    rows = len(examples) // (4 if recipe.training.packing else recipe.training.batch_per_device)
    accumulation = max(1, min(recipe.training.gradient_accumulation, rows // LEAST_STEPS))
    once = {"epochs": 1.0, "steps": None, "eval_steps": None, "save_steps": 10**9}
    training = recipe.training.model_copy(update={"gradient_accumulation": accumulation, **once})
    model = recipe.model.model_copy(update={"device": trial.device, "quantisation": "none"})
    recipe = recipe.model_copy(update={"model": model, "training": training})
    load = os.getloadavg()[0]
    texts = list(tokenizer_texts(toolbox, queries))
    ways = {name: partial(_trained, name, trial, recipe, texts) for name in SYSTEMS}
    systems = take_turns(ways, [examples], trial.repeats, "Training", warm=0)
    _check_same(systems)
    speed, memory = (
        {name: float(median(run[figure] for run in runs)) for name, runs in systems.items()}
        for figure in ("tokens_per_s", "peak_memory_mib")
    )
    first = systems[RECIPE][0]
    return Report(
        bench="training",
        settings={
            "recipe": trial.recipe,
            "model": f"random-mistral-{trial.size}",
            "parameters_with_adapter": first["parameters"],
            "examples": first["examples"],
            "tokens": first["tokens_given"],
            "repeats": trial.repeats,
            "steps_not_timed": WARM,
            "load_average_at_start": round(load, 2),
            "seed": trial.seed,
            "systems": {name: runs[0]["settings"] for name, runs in systems.items()},
        },
        figures={
            **{f"tokens_per_s_{short}": speed[name] for name, short in SYSTEMS.items()},
            **{f"peak_memory_mib_{short}": memory[name] for name, short in SYSTEMS.items()},
            **{
                f"ratio_{figure}_recipe_over_{SYSTEMS[name]}": values[RECIPE] / values[name]
                for figure, values in (("tokens_per_s", speed), ("memory", memory))
                for name in (DEFAULTS, SAME_ADAPTER)
            },
        },
        rows=[
            {
                "system": name,
                "tokens a second": round(speed[name], 1),
                "peak memory, MiB": round(memory[name]),
                "steps": runs[0]["steps"],
                "trained weights": runs[0]["parameters_trained"],
                "loss before": round(runs[0]["loss_before"], 3),
            }
            for name, runs in systems.items()
        ],
        notes=_NOTES,
    )


def _trained(system: str, *inputs: Any) -> dict[str, Any]:
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        try:
            return pool.submit(train_once, system, *inputs).result()
        except Exception as error:  # a process may end in any way
            raise InputError(
                f"Training by {system} failed: {error}. Take fewer --examples, or a smaller --size."
            ) from error


def _check_same(systems: Runs) -> None:
    """Raise ``InputError`` if the systems did not train one model on the same examples."""
    runs = [run for runs_of in systems.values() for run in runs_of]
    losses = [run["loss_before"] for run in runs]
    same = len({(run["examples"], run["tokens_given"], run["tokens"]) for run in runs}) == 1
    if not same or max(losses) - min(losses) > SAME_LOSS:
        raise InputError(
            "The systems did not train on the same examples, and cannot be compared: tokens "
            f"{[run['tokens'] for run in runs]}, losses before {losses}."
        )


def train_once(
    system: str,
    trial: TrainingTrial,
    recipe: Recipe,
    texts: Sequence[str],
    examples: Sequence[TrainingExample],
) -> dict[str, Any]:
    """Train once over the examples, with a tokenizer of the texts; return the measurements."""
    with silence(), TemporaryDirectory(prefix="casewright-training-") as folder:
        placement = find_placement(recipe.model, recipe.training)
        dtype = str(placement.dtype).removeprefix("torch.")
        model = trial.model(dtype).open(texts)
        if system == RECIPE:
            model.network.set_attn_implementation(placement.attention)
        rows = token_rows(examples, model, recipe.training.max_length)
        trainer = _trainer(system, model, rows.rows, recipe, placement, Path(folder))
        weights = [(p.numel(), p.requires_grad) for p in model.network.parameters()]
        return {
            "tokens_given": rows.tokens,
            "examples": len(rows.rows),
            "parameters": sum(count for count, _ in weights),
            "parameters_trained": sum(count for count, trained in weights if trained),
            **_measured(trainer, rows.rows[:COMPARED], placement, model),
        }


def _measured(
    trainer: Any, compared: Sequence[TokenRow], placement: Placement, model: LanguageModel
) -> dict[str, Any]:
    """Train; return times, memory, the loss before on the compared rows, and settings."""
    labelled = [
        {
            "input_ids": row.input_ids,
            "labels": [
                token if masked else -100
                for token, masked in zip(row.input_ids, row.completion_mask, strict=True)
            ],
        }
        for row in compared
    ]
    loss = mean_token_loss(trainer, labelled, placement.dtype)
    device_name = str(placement.device)
    if placement.device.type == "cuda":
        import torch

        device_name = torch.cuda.get_device_name(placement.device)
        # Without the memory of loading and of the loss.
        torch.cuda.reset_peak_memory_stats(placement.device)
    step_times = _timed(trainer, placement)
    trainer.train()
    args, steps = trainer.args, step_times()
    counted = steps[WARM:] or steps
    return {
        "tokens_per_s": sum(tokens for _, tokens in counted) / sum(s for s, _ in counted),
        "peak_memory_mib": peak_memory(placement.device) / 2**20,
        "steps": len(steps),
        "tokens": sum(tokens for _, tokens in steps),
        "loss_before": loss,
        "settings": {
            "batch_per_device": args.per_device_train_batch_size,
            "gradient_accumulation": args.gradient_accumulation_steps,
            "packing": args.packing,
            "max_length": args.max_length,
            "gradient_checkpointing": args.gradient_checkpointing,
            "optimiser": str(getattr(args.optim, "value", args.optim)),
            "autocast_bf16": bool(args.bf16),
            "weights": str(placement.dtype).removeprefix("torch."),
            "attention": model.network.config._attn_implementation,
            "device": device_name,
        },
    }


def _trainer(
    name: str,
    model: LanguageModel,
    rows: Sequence[TokenRow],
    recipe: Recipe,
    placement: Placement,
    folder: Path,
) -> SFTTrainer:
    """Return a system's trainer of one pass over the rows, before its first step."""
    if name == RECIPE:
        sections = (recipe.lora, recipe.training)
        return make_trainer(model, rows, rows, sections, placement, folder)
    from peft import LoraConfig
    from trl.trainer.sft_config import SFTConfig
    from trl.trainer.sft_trainer import SFTTrainer

    datasets: Any = import_module("datasets")
    names = ("input_ids", "completion_mask")
    dataset = datasets.Dataset.from_dict({n: [getattr(row, n) for row in rows] for n in names})
    adapter = lora_config(recipe.lora) if name == SAME_ADAPTER else LoraConfig("CAUSAL_LM")
    return SFTTrainer(
        model=model.network,
        args=SFTConfig(
            output_dir=str(folder),
            # By default completions beyond 1,024 tokens would be cut.
            max_length=recipe.training.max_length,
            # TRL's default for prompts and completions that it tokenizes itself.
            completion_only_loss=True,
            num_train_epochs=1,
            use_cpu=placement.device.type == "cpu",
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            log_level="error",
        ),
        train_dataset=dataset,
        processing_class=model.tokenizer,
        peft_config=adapter,
    )


def _timed(trainer: Any, placement: Placement) -> Callable[[], list[tuple[float, float]]]:
    """Return a function of seconds and tokens of each step that the trainer then took."""
    from transformers import PrinterCallback, TrainerCallback

    stamps: list[float] = []
    totals: list[float] = []

    def stamp() -> None:
        synchronize(placement.device)
        stamps.append(time.perf_counter())

    class Timing(TrainerCallback):
        def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            stamp()

        def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            stamp()
            control.should_log = True

        def on_log(
            self, args: Any, state: Any, control: Any, logs: Any = None, **others: Any
        ) -> None:
            # TRL counts tokens without padding.
            if logs and "num_tokens" in logs and len(totals) < len(stamps) - 1:
                totals.append(float(logs["num_tokens"]))

    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(Timing())

    def steps() -> list[tuple[float, float]]:
        seconds = [end - begin for begin, end in itertools.pairwise(stamps)]
        tokens = [now - before for before, now in itertools.pairwise([0.0, *totals])]
        return list(zip(seconds, tokens, strict=True))

    return steps
