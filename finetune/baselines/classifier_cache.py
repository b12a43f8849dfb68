"""A cache on disk for the weights of trained classifiers."""

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
from casewright.planner import AnnotatedQuery
from casewright.planner.named import NamedPlanner, PlannerParts
from casewright.stores import Encoder, default_encoder
from casewright.stores.paths import cache_folder
from casewright.stores.progress import note

#: A part of the digest in a file's name; raise it if weights, features or training change.
FORMAT_VERSION = 3


def cached_classifiers(queries: Sequence[AnnotatedQuery], encoder: Encoder) -> ClassifierPlanner:
    """Return a planner for these queries and this encoder, from the cache or newly trained.

    See ``train_classifiers``. A cache folder that cannot be written to is ignored.
    """
    digest = hashlib.sha256(f"{FORMAT_VERSION}\n{encoder.name}\n".encode())
    for query in queries:
        record = query.record.model_dump_json(exclude={"id"})
        digest.update(json.dumps([record, str(query.plan)]).encode())
    file = cache_folder() / "classifiers" / f"{digest.hexdigest()}.npz"
    # A pickle in the file could run code, so pickles are not allowed.
    with (
        suppress(InputError, OSError, ValueError, KeyError, EOFError, BadZipFile),
        np.load(file, allow_pickle=False) as weights,
    ):
        return train_classifiers(queries, encoder, weights)  # With weights, it does not train.
    note("Training the classifiers, once …")
    planner = train_classifiers(queries, encoder)
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        # Another process may write this file too, so each writes its own file and renames it.
        temporary_file = file.with_name(f"{file.name}.{os.getpid()}")
        with temporary_file.open("wb") as stream:
            np.savez(stream, ensemble=planner.ensemble.weights, words=planner.arguments.weights)
        temporary_file.replace(file)
    return planner


def _make_planner(parts: PlannerParts) -> ClassifierPlanner:
    queries = parts.queries()
    if not queries:
        raise InputError(
            f"The planner {parts.name!r} learns from annotated queries, and there are none here. "
            "Choose a domain that has some, such as shopping, or another planner."
        )
    return cached_classifiers(queries, parts.encoder or default_encoder())


#: The factory of the planner ``classifiers``; ``pyproject.toml`` makes it an entry point.
CLASSIFIERS = NamedPlanner(_make_planner)
