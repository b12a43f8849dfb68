"""Makes a training set from annotated queries (REAPER, Joshi et al. 2024, section 3).

``tevo`` (Tool Evolve) varies the prompts; ``ttg`` (Tool-Task Generator) makes tasks from a query.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from casewright import __version__
from casewright.finetune.example import TrainingExample, without_duplicates
from casewright.finetune.examples import corpus_examples, query_pool, training_set
from casewright.finetune.examples.data_section import DataSection
from casewright.finetune.examples.shared_toolboxes import vary_in_groups
from casewright.finetune.examples.tevo import PromptVariation
from casewright.finetune.examples.toolset import toolset_examples
from casewright.finetune.examples.training_set import TRAIN, VALIDATION, TrainingSet
from casewright.finetune.examples.ttg import task_examples
from casewright.finetune.folds import similarity_groups
from casewright.finetune.instructions import instructions
from casewright.finetune.instructions.instruction import TASK as INSTRUCTION
from casewright.finetune.neighbours import Neighbours, question_key
from casewright.finetune.queries.choose import choose_queries
from casewright.finetune.tool_pools import ToolPool
from casewright.planner import AnnotatedQuery
from casewright.planner.prompt import prompt_hash
from casewright.stores import Encoder
from casewright.stores.progress import progress_bar
from casewright.tools import Toolbox, ToolSpec


@dataclass(frozen=True, slots=True)
class TrainingInputs:
    """The queries, tools and pools of alternative names to which a recipe's ``[data]`` refers.

    ``follow_ups`` are queries with a history; they are used only if the recipe uses the corpus.
    ``measuring`` holds test questions, which must not be in a training set.
    """

    queries: Sequence[AnnotatedQuery]
    toolbox: Toolbox
    pools: Mapping[str, ToolPool] = field(default_factory=dict)
    distractors: Sequence[ToolSpec] = ()
    measuring: Sequence[str] = ()
    follow_ups: Sequence[AnnotatedQuery] = ()


@dataclass(slots=True)
class _BuildState:
    """The queries and figures of a set that is being made, and the ids of validation examples."""

    pool: query_pool.QueryPool
    queries: list[AnnotatedQuery] = field(default_factory=list)
    validation_query_count: int = 0
    validation_ids: set[str] = field(default_factory=set)
    toolset_entries: Sequence[Mapping[str, Any]] = ()
    corpus_entry: Mapping[str, Any] = field(default_factory=dict)
    instruction_pool_size: int = 0
    refusal_counts: Counter[str] = field(default_factory=Counter)


def make_training_set(data: DataSection, inputs: TrainingInputs, encoder: Encoder) -> TrainingSet:
    """Return the training set of a recipe's ``[data]``; the encoder finds similar questions.

    The same arguments give the same set, byte for byte. A query's random prompts depend on the
    seed, the query's id and the queries with the same toolbox, not on the order of the queries. All
    examples of a query and of similar queries are in one split, training or validation. Prompts
    show only training queries as plan cases. Queries of public tool-use sets are only for training.

    Raises:
        InputError: The queries do not fit the toolbox, there are too few queries, too few
            instructions can be evolved, or a data source cannot be read.
    """
    state = _BuildState(query_pool.query_pool(inputs.queries, inputs.toolbox, inputs.measuring))
    planning = _planning_examples(state, data, inputs, encoder) if data.ttg.tasks_per_query else []
    instruction_sample = instructions(data.instructions, data.seed, refused=state.refusal_counts)
    state.instruction_pool_size = instruction_sample.pool_size
    examples = [*planning, *instruction_sample.examples]
    random.Random(f"{data.seed}:mixture").shuffle(examples)
    planning_ids = {example.id for example in planning}
    splits: dict[str, list[TrainingExample]] = {TRAIN: [], VALIDATION: []}
    for example in examples:
        is_validation = example.id in state.validation_ids
        if example.id not in planning_ids:
            # The source decides, so an instruction and its evolved form are in the same split.
            source = example.source
            is_validation = query_pool.in_validation(source, data.validation, seed=data.seed)
        splits[VALIDATION if is_validation else TRAIN].append(example)
    manifest = _manifest(splits, state, data, inputs)
    return TrainingSet(tuple(splits[TRAIN]), tuple(splits[VALIDATION]), manifest)


def _planning_examples(
    state: _BuildState, data: DataSection, inputs: TrainingInputs, encoder: Encoder
) -> list[TrainingExample]:
    """Return the examples of queries, tool-use sets and the corpus, in this order."""
    state.queries = choose_queries(state.pool.queries, data.sampling, encoder, data.seed)
    state.queries += corpus_examples.added_queries(inputs.toolbox, data.corpus, encoder, data.seed)
    if data.corpus.copies:  # The corpus is used. Decoys are queries with an unrelated history.
        rng = random.Random(f"{data.seed}:decoys")
        state.queries += inputs.follow_ups
        state.queries += corpus_examples.decoy_queries(state.queries, len(inputs.follow_ups), rng)
    examples = _query_examples(state, data, inputs, encoder)
    test_keys = frozenset(map(question_key, inputs.measuring))
    toolset_tasks, state.toolset_entries = toolset_examples(
        data.toolsets, data.tevo, data.ttg, encoder, seed=data.seed, test_question_keys=test_keys
    )
    corpus = corpus_examples.corpus_examples(
        data.corpus, data.tevo, data.ttg, encoder, seed=data.seed
    )
    state.corpus_entry = corpus.manifest_entry
    state.validation_ids |= {example.id for example in corpus.validation}
    return [*examples, *toolset_tasks, *corpus.train, *corpus.validation]


def _query_examples(
    state: _BuildState, data: DataSection, inputs: TrainingInputs, encoder: Encoder
) -> list[TrainingExample]:
    """Return the examples of all queries, in the queries' order; no example is repeated."""
    validation_indices: frozenset[int] = frozenset()
    if data.validation:
        groups = similarity_groups([query.query for query in state.queries], encoder)
        validation_indices = query_pool.validation_items(groups, data.validation, seed=data.seed)
    state.validation_query_count = len(validation_indices)
    training = [q for i, q in enumerate(state.queries) if i not in validation_indices]
    validation = [q for i, q in enumerate(state.queries) if i in validation_indices]
    neighbours = Neighbours(training, encoder) if data.tevo.samples_queries else None
    variation = PromptVariation(
        inputs.toolbox, data.tevo, inputs.pools, neighbours, inputs.distractors
    )
    examples_by_id: dict[str, list[TrainingExample]] = {str(q.record.id): [] for q in state.queries}
    with progress_bar("Making examples of queries", len(state.queries) * data.copies) as advance:
        # The splits are grouped separately, so a training and a validation query share no toolbox.
        for is_validation, queries in ((False, training), (True, validation)):
            for copy, group, rng in vary_in_groups(
                queries, variation, encoder, seed=data.seed, copies=data.copies
            ):
                for varied in group:
                    examples = task_examples(varied, data.ttg, rng, copy)
                    examples_by_id[str(varied.query.record.id)] += examples
                    if is_validation:
                        state.validation_ids |= {example.id for example in examples}
                advance(len(group))
    return without_duplicates(chain.from_iterable(examples_by_id.values()))


def _manifest(
    splits: Mapping[str, Sequence[TrainingExample]],
    state: _BuildState,
    data: DataSection,
    inputs: TrainingInputs,
) -> dict[str, Any]:
    """Return the manifest as JSON. It has no times or paths, so equal sets have equal manifests."""
    examples = list(chain.from_iterable(splits.values()))
    instruction_count = sum(map(_is_instruction, examples))
    task_count = len(examples) - instruction_count
    readers = {entry["reader"] for entry in state.toolset_entries}
    pools = {name: pool.model_dump(mode="json") for name, pool in inputs.pools.items()}
    return {
        "format": training_set.FORMAT,
        "casewright": __version__,
        "prompt_hash": prompt_hash(),
        "seed": data.seed,
        "queries": {
            "given": len(state.pool.queries) + state.pool.excluded_count,
            "left_out_for_measuring": state.pool.excluded_count,
            "taken": len(state.queries),
            "for_validation": state.validation_query_count,
            "sha256": query_pool.queries_hash(state.queries),
            "classes": _count_by_name(query.label for query in state.queries),
        },
        "toolbox": {
            "fingerprint": inputs.toolbox.fingerprint(),
            "tools": list(inputs.toolbox.names),
        },
        "pools": hashlib.sha256(json.dumps(pools, sort_keys=True).encode()).hexdigest(),
        "examples": {
            name: {
                "all": len(split),
                "tasks": _count_by_name(example.task for example in split),
                "sources": _count_by_name(_source_kind(example, readers) for example in split),
            }
            for name, split in splits.items()
        },
        **({"toolsets": list(state.toolset_entries)} if state.toolset_entries else {}),
        **({"corpus": dict(state.corpus_entry)} if state.corpus_entry else {}),
        "instructions": {
            "pool": state.instruction_pool_size,
            "taken": instruction_count,
            # In the paper's Table 3, six instructions for each planning task are best.
            "per_planning_task": round(instruction_count / task_count, 4) if task_count else None,
            "licences": {
                Path(source.path).name: source.licence
                for source in data.instructions.sources
                if data.instructions.share  # with share = 0, no source is used
            },
            "refused": dict(sorted(state.refusal_counts.items())),
        },
        "data": _without_folders(data.model_dump(mode="python")),
        "files": {name: training_set.file_entry(split) for name, split in splits.items()},
    }


def _is_instruction(example: TrainingExample) -> bool:
    return example.task.partition(":")[0] == INSTRUCTION


def _source_kind(example: TrainingExample, readers: Collection[str]) -> str:
    """Return the reader of an instruction or of a tool-use set's query, else ``queries``."""
    name = example.source.partition(":")[0]
    return name if _is_instruction(example) or name in readers else "queries"


def _count_by_name(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))


def _without_folders(value: Any) -> Any:
    """Return settings as JSON values, with a file's name instead of its path."""
    match value:
        case Path() | str() if Path(value).is_absolute():
            return Path(value).name
        case dict():
            return {k: _without_folders(v) for k, v in value.items() if v is not None}
        case list() | tuple():
            return [_without_folders(v) for v in value]
    return value
