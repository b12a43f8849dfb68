"""What a training set says of itself: of what it was made, how, and what is in it."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from casewright import __version__
from casewright.finetune.examples.drills import DRILL
from casewright.finetune.examples.example import TrainingExample
from casewright.finetune.examples.query_pool import QueryPool, queries_hash
from casewright.finetune.examples.tool_pools import ToolPool
from casewright.finetune.examples.training_set import FORMAT, TRAIN, VALIDATION, file_entry
from casewright.finetune.instructions.instruction import TASK as INSTRUCTION
from casewright.finetune.instructions.readers.registry import READERS, contaminated, licences
from casewright.finetune.recipe.data_section import DataSection
from casewright.planner import AnnotatedQuery
from casewright.planner.prompt_hash import prompt_hash
from casewright.tools import Toolbox


@dataclass(frozen=True, slots=True)
class Made:
    """A training set before it is described.

    Attributes:
        train: To train with.
        validation: To validate with.
        chosen: The queries that were taken.
        held: How many of them are for validation.
        pool: The queries that could be taken.
        toolsets: Of each public tool-use set, what is told of it.
        refused: Why records of the sources of instructions were left out, and how often.
    """

    train: tuple[TrainingExample, ...]
    validation: tuple[TrainingExample, ...]
    chosen: Sequence[AnnotatedQuery]
    held: int
    pool: QueryPool
    toolsets: Sequence[Mapping[str, Any]]
    refused: Mapping[str, int]


def manifest_of(
    made: Made, data: DataSection, toolbox: Toolbox, pools: Mapping[str, ToolPool]
) -> dict[str, Any]:
    """Return the manifest: JSON-plain, without times and places, the same for the same set."""
    sides = {TRAIN: made.train, VALIDATION: made.validation}
    everything = [*made.train, *made.validation]
    generic = [example for example in everything if is_instruction(example)]
    sets = {told["reader"] for told in made.toolsets}
    return {
        "format": FORMAT,
        "casewright": __version__,
        "prompt_hash": prompt_hash(),
        "seed": data.seed,
        "queries": {
            "given": len(made.pool.queries) + made.pool.excluded,
            "left_out_for_measuring": made.pool.excluded,
            "taken": len(made.chosen),
            "for_validation": made.held,
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
        "instructions": {
            "share": round(len(generic) / len(everything), 4),
            **_provenance({example.source for example in generic}),
            "refused": dict(sorted(made.refused.items())),
        },
        "data": _told(data.model_dump(mode="python")),
        "files": {name: file_entry(examples) for name, examples in sides.items()},
    }


def is_instruction(example: TrainingExample) -> bool:
    """Say whether an example is a generic instruction, and none that a query was made to."""
    return example.task.partition(":")[0] == INSTRUCTION


def _provenance(sources: set[str]) -> dict[str, Any]:
    """Return where instructions come from, on which terms, and what they make unmeasurable."""
    terms = licences(sources)
    return {
        "licences": terms,
        "origins": {name: READERS[name].origin for name in terms},
        "contaminates": contaminated(sources),
    }


def _source_kind(example: TrainingExample, toolsets: Collection[str]) -> str:
    name = example.source.partition(":")[0]
    return name if is_instruction(example) or name in {DRILL, *toolsets} else "queries"


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
