"""The manifest of a training set, and its two sides: what is alike stays on one of them."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from casewright import __version__
from casewright.errors import InputError
from casewright.finetune.example import TrainingExample
from casewright.finetune.examples.data_section import DataSection
from casewright.finetune.examples.query_pool import QueryPool, queries_hash
from casewright.finetune.examples.training_set import FORMAT, TRAIN, VALIDATION, file_entry
from casewright.finetune.instructions.instruction import TASK as INSTRUCTION
from casewright.finetune.instructions.readers.registry import contaminated, licences, readers_of
from casewright.finetune.tool_pools import ToolPool
from casewright.planner import AnnotatedQuery
from casewright.planner.prompt_hash import prompt_hash
from casewright.tools import Toolbox


def validation_items(groups: Sequence[Hashable], share: float, *, seed: int = 0) -> frozenset[int]:
    """Draw whole groups for validation, up to a share of all items; return their items' indices.

    A group that would pass the share is left to training. Where even the smallest would, that one
    is drawn all the same, so that there is something to validate with.

    Args:
        share: Of all items, from 0 and below 1; 0 draws nothing.

    Raises:
        InputError: All items are one group, and a share above 0 was asked for.
    """
    if share == 0:
        return frozenset()
    members: dict[Hashable, list[int]] = defaultdict(list)
    for item, group in enumerate(groups):
        members[group].append(item)
    if len(members) < 2:
        raise InputError(
            f"The {len(groups)} queries cannot be split: they are one group of queries that are "
            "alike. Add other queries, or set validation = 0."
        )
    order = list(members.values())
    random.Random(f"{seed}:validation").shuffle(order)
    room = round(share * len(groups))
    drawn: list[int] = []
    # One group at least is left to train on.
    for items in order[1:]:
        if len(items) <= room - len(drawn):
            drawn += items
    smallest = min(order, key=len)
    return frozenset(drawn or smallest)


def in_validation(key: str, share: float, *, seed: int = 0) -> bool:
    """Return whether what has this key is for validation: a share of all keys, by their hashes."""
    digest = hashlib.blake2b(f"{seed}:{key}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") < share * 2**64


@dataclass(slots=True)
class Made:
    """The facts of a training set that its manifest holds, collected while it is made.

    Attributes:
        held: The ids of the planning tasks for validation.
        toolsets: Of each public tool-use set, what is told of it.
        corpus: What is told of the corpus of toolboxes; empty without it.
        refused: Why records of the sources of instructions were left out, and how often.
    """

    pool: QueryPool
    chosen: Sequence[AnnotatedQuery] = ()
    queries_held: int = 0
    held: set[str] = field(default_factory=set)
    toolsets: Sequence[Mapping[str, Any]] = ()
    corpus: Mapping[str, Any] = field(default_factory=dict)
    instructions: int = 0
    refused: Counter[str] = field(default_factory=Counter)


def manifest_of(
    train: Sequence[TrainingExample],
    validation: Sequence[TrainingExample],
    made: Made,
    data: DataSection,
    toolbox: Toolbox,
    pools: Mapping[str, ToolPool],
) -> dict[str, Any]:
    """Return the manifest: JSON-plain, without times and places, the same for the same set."""
    sides = {TRAIN: train, VALIDATION: validation}
    everything = [*train, *validation]
    generic = [example for example in everything if is_instruction(example)]
    planning = len(everything) - len(generic)
    sets = {facts["reader"] for facts in made.toolsets}
    sources = {example.source for example in generic}
    return {
        "format": FORMAT,
        "casewright": __version__,
        "prompt_hash": prompt_hash(),
        "seed": data.seed,
        "queries": {
            "given": len(made.pool.queries) + made.pool.excluded,
            "left_out_for_measuring": made.pool.excluded,
            "taken": len(made.chosen),
            "for_validation": made.queries_held,
            "sha256": queries_hash(made.chosen),
            "classes": _counts(query.label for query in made.chosen),
        },
        "toolbox": {"fingerprint": toolbox.fingerprint(), "tools": list(toolbox.names)},
        "pools": _digest({name: pool.model_dump(mode="json") for name, pool in pools.items()}),
        "examples": {
            name: {
                "all": len(examples),
                "tasks": _counts(example.task for example in examples),
                "sources": _counts(_source_kind(example, sets) for example in examples),
            }
            for name, examples in sides.items()
        },
        **({"toolsets": list(made.toolsets)} if made.toolsets else {}),
        **({"corpus": dict(made.corpus)} if made.corpus else {}),
        "instructions": {
            "pool": made.instructions,
            "taken": len(generic),
            # The paper's Table 3 is best at six to one planning task.
            "per_planning_task": round(len(generic) / planning, 4) if planning else None,
            "licences": licences(sources),
            "origins": {name: own.origin for name, own in readers_of(sources).items()},
            "contaminates": contaminated(sources),
            "refused": dict(sorted(made.refused.items())),
        },
        "data": _told(data.model_dump(mode="python")),
        "files": {name: file_entry(examples) for name, examples in sides.items()},
    }


def is_instruction(example: TrainingExample) -> bool:
    """Return whether an example is a generic instruction, and none that a query was made to."""
    return example.task.partition(":")[0] == INSTRUCTION


def _source_kind(example: TrainingExample, toolsets: Collection[str]) -> str:
    name = example.source.partition(":")[0]
    return name if is_instruction(example) or name in toolsets else "queries"


def _counts(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))


def _digest(told: Any) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _told(value: Any) -> Any:
    """Return settings JSON-plain, files by their names: where they lie is this machine's."""
    match value:
        case Path() | str() if Path(value).is_absolute():
            return Path(value).name
        case dict():
            return {name: _told(inner) for name, inner in value.items() if inner is not None}
        case list() | tuple() | set() | frozenset():
            return [_told(inner) for inner in value]
    return value
