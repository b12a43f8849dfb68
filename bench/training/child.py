"""One system's training, in a process of its own: what it needs of memory is then its own.

Run as ``python -m casewright.bench.training.child`` with a task as JSON on standard input; prints
what it measured as JSON.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from casewright.bench.decoding.models import ModelChoice
from casewright.bench.training.systems import RECIPE, system_trainer
from casewright.finetune.examples.example import TrainingExample
from casewright.finetune.recipe.recipe import Recipe
from casewright.finetune.training.figures import peak_memory
from casewright.finetune.training.losses import mean_token_loss
from casewright.finetune.training.placement import Placement, find_placement
from casewright.finetune.training.silence import silence
from casewright.finetune.training.tokens import token_rows

if TYPE_CHECKING:
    from collections.abc import Callable

#: Steps whose time does not count: the first ones reserve memory, and choose kernels.
WARM = 1
#: Examples that all systems measure the same loss on, before the first step.
COMPARED = 8


@dataclass(frozen=True, slots=True)
class Task:
    """What a child is to do.

    Attributes:
        system: Which system trains.
        recipe: The recipe's file.
        accumulation: Batches a step, in place of the recipe's.
        size: Of the random network.
        device: Where; ``None`` for a GPU where there is one.
        seed: Draws the weights.
        texts: What the tokenizer is trained on.
        examples: Rows of training examples.
    """

    system: str
    recipe: str
    accumulation: int
    size: str
    device: str | None
    seed: int
    texts: list[str]
    examples: list[dict[str, Any]]


def main() -> None:
    """Do the task on standard input."""
    task = Task(**json.load(sys.stdin))
    with silence(), TemporaryDirectory(prefix="casewright-training-") as folder:
        measured = measure(task, Path(folder))
    print(json.dumps(measured))


def measure(task: Task, folder: Path) -> dict[str, Any]:
    """Train once over the examples, and return what was measured."""
    read = Recipe.read(Path(task.recipe), files=False)
    model_section = read.model.model_copy(update={"device": task.device, "quantisation": "none"})
    training = read.training.model_copy(
        update={
            "gradient_accumulation": task.accumulation,
            "epochs": 1.0,
            "steps": None,
            "eval_steps": None,
            "save_steps": 10**9,
        }
    )
    recipe = read.model_copy(update={"model": model_section, "training": training})
    placement = find_placement(model_section, read.lora, training)
    dtype = str(placement.dtype).removeprefix("torch.")
    choice = ModelChoice(size=task.size, device=task.device, dtype=dtype, seed=task.seed)
    model = choice.open(task.texts)
    if task.system == RECIPE:
        model.network.set_attn_implementation(placement.attention)
    examples = [TrainingExample.from_row(row) for row in task.examples]
    rows = token_rows(examples, model, training.max_length)
    trainer = system_trainer(task.system, model, rows.rows, recipe, placement, folder)
    loss = _first_loss(trainer, rows.rows, model, placement)
    _reset_peak(placement)
    clock = _timed(trainer, placement)
    trainer.train()
    args: Any = trainer.args
    steps = clock()
    counted = steps[WARM:] or steps
    return {
        "tokens_per_s": sum(tokens for _, tokens in counted) / sum(s for s, _ in counted),
        "peak_memory_mib": peak_memory(placement.device) / 2**20,
        "steps": len(steps),
        "tokens": sum(tokens for _, tokens in steps),
        "tokens_given": rows.tokens,
        "examples": len(rows.rows),
        "loss_before": loss,
        "parameters": sum(p.numel() for p in model.network.parameters()),
        "parameters_trained": sum(p.numel() for p in model.network.parameters() if p.requires_grad),
        "settings": {
            "batch_per_device": args.per_device_train_batch_size,
            "gradient_accumulation": args.gradient_accumulation_steps,
            "packing": args.packing,
            "max_length": args.max_length,
            "gradient_checkpointing": args.gradient_checkpointing,
            "optimiser": str(getattr(args.optim, "value", args.optim)),
            "autocast_bf16": bool(args.bf16),
            "weights": dtype,
            "attention": model.network.config._attn_implementation,
            "device": _named(placement),
        },
    }


def _first_loss(trainer: Any, rows: Any, model: Any, placement: Placement) -> float:
    """Return the loss on the first examples: it tells whether systems train on the same."""
    shown = [
        {
            "input_ids": row.input_ids,
            "labels": [
                token if mask else -100
                for token, mask in zip(row.input_ids, row.completion_mask, strict=True)
            ],
        }
        for row in rows[:COMPARED]
    ]
    return mean_token_loss(trainer, shown, placement.dtype)


def _timed(trainer: Any, placement: Placement) -> Callable[[], list[tuple[float, float]]]:
    """Time every step of a trainer; the function returns seconds and tokens of each."""
    from transformers import PrinterCallback, TrainerCallback

    stamps: list[float] = []
    totals: list[float] = []

    def stamp() -> None:
        if placement.device.type == "cuda":
            import torch

            torch.cuda.synchronize(placement.device)
        stamps.append(time.perf_counter())

    class Timing(TrainerCallback):
        """Looks at the clock after every step."""

        def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            stamp()

        def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            stamp()
            control.should_log = True

        def on_log(
            self, args: Any, state: Any, control: Any, logs: Any = None, **others: Any
        ) -> None:
            # TRL counts tokens that are no padding.
            if logs and "num_tokens" in logs and len(totals) < len(stamps) - 1:
                totals.append(float(logs["num_tokens"]))

    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(Timing())

    def steps() -> list[tuple[float, float]]:
        seconds = [end - begin for begin, end in itertools.pairwise(stamps)]
        tokens = [now - before for before, now in itertools.pairwise([0.0, *totals])]
        return list(zip(seconds, tokens, strict=True))

    return steps


def _reset_peak(placement: Placement) -> None:
    """Forget what loading and measuring needed, where that can be done."""
    if placement.device.type == "cuda":
        import torch

        torch.cuda.reset_peak_memory_stats(placement.device)


def _named(placement: Placement) -> str:
    if placement.device.type != "cuda":
        return str(placement.device)
    import torch

    return torch.cuda.get_device_name(placement.device)


def as_json(task: Task) -> str:
    """Return a task as a child reads it."""
    return json.dumps(asdict(task))


if __name__ == "__main__":
    main()
