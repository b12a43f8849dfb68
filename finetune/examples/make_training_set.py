"""From annotated queries and a toolbox to a training set (REAPER, Joshi et al. 2024, section 3)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from casewright.finetune.example import TrainingExample, without_duplicates
from casewright.finetune.examples.corpus_examples import among, corpus_examples
from casewright.finetune.examples.data_section import DataSection
from casewright.finetune.examples.manifest import Made, in_validation, manifest_of, validation_items
from casewright.finetune.examples.query_pool import query_pool
from casewright.finetune.examples.shared_toolboxes import Posing, posed
from casewright.finetune.examples.toolset import toolset_examples
from casewright.finetune.examples.training_set import TrainingSet
from casewright.finetune.examples.ttg import tasks_of
from casewright.finetune.folds import similarity_groups
from casewright.finetune.instructions import instructions
from casewright.finetune.queries.choose import choose_queries
from casewright.finetune.shots import Neighbours, plain
from casewright.finetune.tool_pools import ToolPool
from casewright.planner import AnnotatedQuery
from casewright.stores import Encoder
from casewright.stores.progress import progress_bar
from casewright.tools import Toolbox, ToolSpec

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


@dataclass(frozen=True, slots=True)
class Ingredients:
    """The queries, tools and pools that a recipe's ``[data]`` names.

    Attributes:
        queries: Annotated queries with gold plans for the toolbox.
        measuring: Questions that must not be learned from.
    """

    queries: Sequence[AnnotatedQuery]
    toolbox: Toolbox
    pools: Mapping[str, ToolPool] = field(default_factory=dict)
    distractors: Sequence[ToolSpec] = ()
    measuring: Sequence[str] = ()


def make_training_set(
    data: DataSection,
    given: Ingredients,
    encoder: Encoder,
    *,
    chat: BaseChatModel | None = None,
) -> TrainingSet:
    """Make a training set: sampling, TEvo, TTG, other tool sets, instructions, mixture, validation.

    The same arguments make the same set, byte for byte. What is drawn for a query depends on the
    seed, its id and the queries beside it, not on its place. All examples of a query, and of the
    queries most like it, are for training or all for validation; plan cases shown in prompts are
    queries of the training side alone. Queries of public tool-use sets are trained on alone, so
    that validation is of the toolbox that is planned for.

    Args:
        encoder: Embeds questions, for neighbours, validation and sampling; not used where none of
            these is asked for.
        chat: Evolves instructions, where the recipe says that a chat model does.

    Raises:
        InputError: The queries do not fit the toolbox, or there are too few queries for what the
            recipe asks for, too few instructions can be evolved, or a source of instructions or a
            tool-use set cannot be read.
    """
    result = Made(query_pool(given.queries, given.toolbox, given.measuring))
    # Of no task a query there is nothing to make, of the corpus and of tool-use sets neither.
    planning = _planning(result, data, given, encoder) if data.ttg.tasks_per_query else []
    others = instructions(data.instructions, data.seed, chat, refused=result.refused)
    result.instructions = others.pool
    mixed = [*planning, *others.examples]
    random.Random(f"{data.seed}:mixture").shuffle(mixed)
    own = {example.id for example in planning}
    sides: dict[bool, list[TrainingExample]] = {False: [], True: []}
    for example in mixed:
        held = example.id in result.held
        if example.id not in own:
            # By what it was made from: an instruction and its evolution are not told apart.
            held = in_validation(example.source, data.validation, seed=data.seed)
        sides[held].append(example)
    train, validation = tuple(sides[False]), tuple(sides[True])
    manifest = manifest_of(train, validation, result, data, given.toolbox, given.pools)
    return TrainingSet(train, validation, manifest)


def _planning(
    made: Made, data: DataSection, given: Ingredients, encoder: Encoder
) -> list[TrainingExample]:
    """Return the planning tasks of queries, tool-use sets and the corpus, in this order."""
    chosen = choose_queries(made.pool.queries, data.sampling, encoder, data.seed)
    chosen += among(given.toolbox, data.corpus, encoder, data.seed)
    made.chosen = chosen
    examples = _plan_examples(made, data, given, encoder)
    foreign, made.toolsets = toolset_examples(
        *(data.toolsets, data.tevo, data.ttg, encoder),
        seed=data.seed,
        measuring=frozenset(map(plain, given.measuring)),
    )
    corpus = corpus_examples(data.corpus, data.tevo, data.ttg, encoder, seed=data.seed)
    made.corpus = corpus.told
    made.held |= {example.id for example in corpus.validation}
    return [*examples, *foreign, *corpus.train, *corpus.validation]


def _plan_examples(
    made: Made, data: DataSection, given: Ingredients, encoder: Encoder
) -> list[TrainingExample]:
    """Return the examples of all queries, each once, in the queries' order."""
    held: frozenset[int] = frozenset()
    if data.validation:
        groups = similarity_groups([query.query for query in made.chosen], encoder)
        held = validation_items(groups, data.validation, seed=data.seed)
    made.queries_held = len(held)
    sides = [
        [query for index, query in enumerate(made.chosen) if (index in held) is side]
        for side in (False, True)
    ]
    tevo, neighbours = data.tevo, None
    if tevo.shots or (tevo.enabled and tevo.examples):
        neighbours = Neighbours(sides[False], encoder)
    posing = Posing(given.toolbox, tevo, given.pools, neighbours, given.distractors)
    by_query: dict[str, list[TrainingExample]] = {str(q.record.id): [] for q in made.chosen}
    with progress_bar("Making examples of queries", len(made.chosen) * data.copies) as advance:
        # Apart: a head that is only validated with has been trained on by nobody.
        for side, queries in enumerate(sides):
            for copy, evolved, rng in posed(
                queries, posing, encoder, seed=data.seed, copies=data.copies
            ):
                for item in evolved:
                    examples = tasks_of(item, data.ttg, rng)
                    if copy > 1:
                        examples = [replace(own, id=f"{own.id}@{copy}") for own in examples]
                    by_query[str(item.query.record.id)] += examples
                    made.held.update(example.id for example in examples if side)
                advance(len(evolved))
    return without_duplicates(example for some in by_query.values() for example in some)
