"""Data and settings of a training that takes seconds: toy queries and a tiny new model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from casewright.finetune.example import PLAN_TASK, TrainingExample
from casewright.finetune.examples.training_set import TrainingSet, write_training_set
from casewright.finetune.recipe.training_section import (
    LoraSection,
    ModelSection,
    NewModelSection,
    TrainingSection,
)
from casewright.planner import AnnotatedQuery, render_prompt
from tests.planner.helpers import SHOP
from tests.support.readers import toy_queries

#: A model with about 50,000 weights. ``LORA`` also trains its embedding, because a random embedding
#: contains little that an adapter could use.
MODEL = ModelSection(
    base="new",
    new=NewModelSection(
        hidden=32,
        layers=2,
        heads=4,
        kv_heads=2,
        intermediate=64,
        vocabulary=1024,
        positions=2048,
        tied=False,
    ),
    device="cpu",
)
LORA = LoraSection(r=8, alpha=16, dropout=0.1, modules_to_save=("embed_tokens", "lm_head"))


def training(**settings: Any) -> TrainingSection:
    """Return settings of a short training, replaced by the arguments."""
    short = {"steps": 4, "batch_per_device": 4, "learning_rate": 3e-3, "log_steps": 1}
    return TrainingSection.model_validate({**short, **settings})


def plan_examples(queries: Sequence[AnnotatedQuery] | None = None) -> list[TrainingExample]:
    """Return an example for each query: the prompt as in service, and the gold plan."""
    return [
        TrainingExample(
            str(query.record.id),
            PLAN_TASK,
            str(query.record.id),
            render_prompt(query.record.request(SHOP)),
            str(query.plan),
        )
        for query in (toy_queries() if queries is None else queries)
    ]


def write_set(folder: Path, train: int = 32, validation: int = 8) -> Path:
    """Write a training set of the first toy queries; return the folder."""
    examples = plan_examples(toy_queries()[: train + validation])
    write_training_set(TrainingSet.of(examples[:train], examples[train:]), folder)
    return folder
