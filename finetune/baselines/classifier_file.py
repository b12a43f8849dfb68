"""Trained classifiers as a file: arrays and JSON, nothing that could run code when it is read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from casewright.errors import CasewrightError, InputError
from casewright.finetune.baselines.argument_finder import ArgumentFinder
from casewright.finetune.baselines.classifier_planner import ClassifierPlanner
from casewright.finetune.baselines.plan_ensemble import PlanEnsemble
from casewright.finetune.baselines.question_features import QuestionFeatures
from casewright.finetune.baselines.word_features import COLUMNS
from casewright.planner import parse_plan
from casewright.stores import Encoder

#: Raised when files or features change.
FORMAT = 1


def save_classifiers(planner: ClassifierPlanner, file: Path) -> None:
    """Write what was trained; nobody ever reads half of it."""
    ensemble = planner.ensemble
    told = {
        "format": FORMAT,
        "encoder": planner.encoder.name,
        "dimension": ensemble.features.dimension,
        "rarity": dict(ensemble.features.rarity),
        "fields": ensemble.features.fields,
        "embedding_scale": ensemble.features.embedding_scale,
        "words_scale": ensemble.features.words_scale,
        "labels": ensemble.labels,
        "shapes": [str(plan) for plan in ensemble.shapes],
        "prior": ensemble.prior,
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f"{file.name}.{os.getpid()}")
    with part.open("wb") as opened:
        np.savez(
            opened,
            told=np.frombuffer(json.dumps(told).encode(), dtype=np.uint8),
            weights=ensemble.weights,
            described=ensemble.described,
            counts=ensemble.counts,
            words=planner.arguments.weights,
        )
    part.replace(file)


def load_classifiers(file: Path, encoder: Encoder) -> ClassifierPlanner:
    """Read what ``save_classifiers`` wrote.

    Args:
        file: The file.
        encoder: The one that the classifiers were trained with.

    Raises:
        InputError: The file cannot be read, is no such file or a damaged one, or the classifiers
            were trained with another encoder.
    """
    try:
        with np.load(file, allow_pickle=False) as arrays:
            told: dict[str, Any] = json.loads(arrays["told"].tobytes())
            if told["format"] != FORMAT:
                raise ValueError(f"its format is {told['format']}, not {FORMAT}")
            planner = ClassifierPlanner(_ensemble(told, arrays), _arguments(arrays), encoder)
    except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile, CasewrightError) as why:
        raise InputError(
            f"{file} holds no classifiers that can be read: {why}. Train them again."
        ) from why
    if told["encoder"] != encoder.name:
        raise InputError(
            f"The classifiers in {file} were trained with the encoder {told['encoder']!r}, not "
            f"{encoder.name!r}. Train them again, or give that encoder."
        )
    return planner


def _ensemble(told: dict[str, Any], arrays: Any) -> PlanEnsemble:
    features = QuestionFeatures(
        int(told["dimension"]),
        {str(word): float(value) for word, value in told["rarity"].items()},
        tuple(told["fields"]),
        float(told["embedding_scale"]),
        float(told["words_scale"]),
    )
    ensemble = PlanEnsemble(
        features,
        tuple(told["labels"]),
        arrays["weights"],
        tuple(parse_plan(text) for text in told["shapes"]),
        arrays["described"],
        arrays["counts"],
        float(told["prior"]),
    )
    labels, shapes = len(ensemble.labels), len(ensemble.shapes)
    found = [ensemble.weights.shape, ensemble.described.shape, ensemble.counts.shape]
    if found != [(labels, features.width + 1), (shapes, labels), (shapes,)]:
        raise ValueError(f"its arrays have the shapes {found}")
    return ensemble


def _arguments(arrays: Any) -> ArgumentFinder:
    if arrays["words"].shape != (COLUMNS + 1,):
        raise ValueError(f"its words have the shape {arrays['words'].shape}")
    return ArgumentFinder(arrays["words"])
