"""A training in seconds: a set of the toy shop's queries, and sections for a tiny new model."""

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

#: A model of some 50,000 weights. Its embedding learns too: a random one holds little to adapt.
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
    """Return settings of a short training; those that are given replace them."""
    short = {"steps": 4, "batch_per_device": 4, "learning_rate": 3e-3, "log_steps": 1}
    return TrainingSection.model_validate({**short, **settings})


def plan_examples(queries: Sequence[AnnotatedQuery] | None = None) -> list[TrainingExample]:
    """Return an example a query: the prompt that serving would render, and the gold plan."""
    chosen = toy_queries() if queries is None else queries
    return [
        TrainingExample(
            str(query.record.id),
            PLAN_TASK,
            str(query.record.id),
            render_prompt(query.record.request(SHOP)),
            str(query.plan),
        )
        for query in chosen
    ]


def write_set(folder: Path, train: int = 32, validation: int = 8) -> Path:
    """Write a training set of the toy queries' first ones; returns the folder."""
    examples = plan_examples(toy_queries()[: train + validation])
    write_training_set(TrainingSet.of(examples[:train], examples[train:]), folder)
    return folder
