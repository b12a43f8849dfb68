"""Classifiers that are trained once for the same queries, and kept in the cache folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress

from casewright.errors import InputError
from casewright.finetune.baselines.classifier_file import (
    FORMAT,
    load_classifiers,
    save_classifiers,
)
from casewright.finetune.baselines.classifier_planner import ClassifierPlanner
from casewright.finetune.baselines.classifiers import train_classifiers
from casewright.finetune.baselines.settings import ClassifierSettings
from casewright.planner import AnnotatedQuery
from casewright.stores import Encoder
from casewright.stores.paths import cache_folder
from casewright.stores.progress import note


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
    if file.exists():
        with suppress(InputError):
            return load_classifiers(file, encoder)
    note("Training the classifiers, once …")
    made = train_classifiers(queries, encoder, given)
    with suppress(OSError):
        save_classifiers(made, file)
    return made


def _digest(
    queries: Sequence[AnnotatedQuery], encoder: Encoder, settings: ClassifierSettings
) -> str:
    made = hashlib.sha256(f"{FORMAT}\n{encoder.name}\n{settings.model_dump_json()}\n".encode())
    for query in queries:
        record = query.record.model_dump_json(exclude={"id"})
        made.update(json.dumps([record, str(query.plan)]).encode())
    return made.hexdigest()
