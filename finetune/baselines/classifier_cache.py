"""Classifiers that are trained once for the same queries: their weights, in the cache folder."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from zipfile import BadZipFile

import numpy as np

from casewright.errors import InputError
from casewright.finetune.baselines.classifiers import ClassifierPlanner, train_classifiers
from casewright.finetune.baselines.question_features import ClassifierSettings
from casewright.planner import AnnotatedQuery
from casewright.planner.named import NamedPlanner, PlannerParts
from casewright.stores import Encoder, default_encoder
from casewright.stores.paths import cache_folder
from casewright.stores.progress import note

#: Raised when weights or features change.
FORMAT = 2


def cached_classifiers(
    queries: Sequence[AnnotatedQuery],
    encoder: Encoder,
    settings: ClassifierSettings | None = None,
) -> ClassifierPlanner:
    """Return the classifiers of these queries, trained where they are not there yet.

    Other queries, another encoder or other settings are trained anew. A cache folder that cannot
    be written to is done without.

    Raises:
        InputError: They cannot be trained; see ``train_classifiers``.
        DependencyError: They must be trained, and scikit-learn is not installed.
    """
    given = settings or ClassifierSettings()
    file = cache_folder() / "classifiers" / f"{_digest(queries, encoder, given)}.npz"
    # Arrays alone: nothing that could run code when it is read.
    with (
        suppress(InputError, OSError, ValueError, KeyError, EOFError, BadZipFile),
        np.load(file, allow_pickle=False) as weights,
    ):
        return train_classifiers(queries, encoder, given, weights)
    note("Training the classifiers, once …")
    result = train_classifiers(queries, encoder, given)
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_name(f"{file.name}.{os.getpid()}")
        with part.open("wb") as opened:
            np.savez(opened, ensemble=result.ensemble.weights, words=result.arguments.weights)
        part.replace(file)
    return result


def _digest(
    queries: Sequence[AnnotatedQuery], encoder: Encoder, settings: ClassifierSettings
) -> str:
    result = hashlib.sha256(f"{FORMAT}\n{encoder.name}\n{settings.model_dump_json()}\n".encode())
    for query in queries:
        record = query.record.model_dump_json(exclude={"id"})
        result.update(json.dumps([record, str(query.plan)]).encode())
    return result.hexdigest()


def _named(parts: PlannerParts) -> ClassifierPlanner:
    known = parts.queries()
    if not known:
        raise InputError(
            f"The planner {parts.name!r} learns from annotated queries, and there are none here. "
            "Choose a domain that has some, such as shopping, or another planner."
        )
    return cached_classifiers(known, parts.encoder or default_encoder())


#: What the entry point of the planner ``classifiers`` names.
CLASSIFIERS = NamedPlanner(_named)
