"""What a new network learns before any row: to read a prompt, by drills alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from casewright import __version__
from casewright.finetune.examples.drills import DrillSettings, drills
from casewright.finetune.examples.training_set import (
    FORMAT,
    TRAIN,
    VALIDATION,
    TrainingSet,
    file_entry,
    write_training_set,
)
from casewright.planner.prompt_hash import prompt_hash


def write_drills(settings: DrillSettings, words: Sequence[str], seed: int, folder: Path) -> None:
    """Write a training set of drills, without validation.

    Args:
        settings: How many.
        words: What they are made of.
        seed: Of all that is drawn.
        folder: Is made.
    """
    made = tuple(drills(settings, words, seed))
    manifest = {
        "format": FORMAT,
        "casewright": __version__,
        "prompt_hash": prompt_hash(),
        "seed": seed,
        "drills": settings.model_dump(mode="json"),
        "files": {TRAIN: file_entry(made), VALIDATION: file_entry(())},
    }
    write_training_set(TrainingSet(made, (), manifest), folder)
