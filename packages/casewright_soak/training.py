"""Trials that kill a training at a change of a file, and resume it in a new process."""

from __future__ import annotations

import hashlib
from pathlib import Path

from casewright.finetune.example import PLAN_TASK, TrainingExample
from casewright.finetune.examples.training_set import TrainingSet, write_training_set
from casewright.finetune.recipe import training_section
from casewright.finetune.training.train import train
from casewright.planner import PlanRequest, render_prompt
from casewright.tools import Toolbox
from casewright_soak.kills import kill_at_steps
from casewright_soak.trials import Bounds, Counts

#: Number of training examples, and number of validation examples.
TRAINING_COUNT, VALIDATION_COUNT = 8, 2
#: The next constants are a recipe's sections for a tiny network and a short training.
_SHAPE = {"hidden": 16, "layers": 1, "heads": 2, "kv_heads": 1, "intermediate": 32}
_NETWORK = training_section.NewModelSection(**_SHAPE, vocabulary=512, positions=2048, tied=False)
MODEL = training_section.ModelSection(base="new", new=_NETWORK, device="cpu")
LORA = training_section.LoraSection(r=4, alpha=8, modules_to_save=("embed_tokens", "lm_head"))
TRAINING = training_section.TrainingSection(
    steps=3, save_steps=1, log_steps=1, batch_per_device=2, learning_rate=3e-3
)


def kills_of_training(bounds: Bounds, folder: Path) -> Counts:
    """Kill a training at each change of a file; when resumed, it must end with the same weights."""
    examples = []
    for number in range(TRAINING_COUNT + VALIDATION_COUNT):
        id_, plan = str(number), f's1 = find(query="machine {number}")'
        prompt = render_prompt(PlanRequest(f"where is machine {number}", Toolbox([])))
        examples.append(TrainingExample(id_, PLAN_TASK, source=id_, prompt=prompt, completion=plan))
    data = folder / "data"
    training_set = TrainingSet.of(examples[:TRAINING_COUNT], examples[TRAINING_COUNT:])
    write_training_set(training_set, data)
    counts = Counts("killed at each step of a training")
    return kill_at_steps(bounds, folder, counts, train_and_hash, data)


def train_and_hash(output: Path, data: Path) -> str:
    """Start or resume a training; return a digest of the weights."""
    train(MODEL, LORA, TRAINING, data, output, resume=True, progress=False)
    return hashlib.sha256((output / "adapter_model.safetensors").read_bytes()).hexdigest()
