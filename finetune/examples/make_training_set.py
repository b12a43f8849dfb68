"""From annotated queries and a toolbox to a training set (REAPER, Joshi et al. 2024, section 3)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from casewright.finetune.examples.drills import drills, question_words
from casewright.finetune.examples.example import TrainingExample
from casewright.finetune.examples.manifest import Made, manifest_of
from casewright.finetune.examples.mixture import instructions_beside, mix, without_duplicates
from casewright.finetune.examples.query_pool import query_pool
from casewright.finetune.examples.shared_toolboxes import Posing, posed
from casewright.finetune.examples.shots import Neighbours, plain
from casewright.finetune.examples.split import in_validation, validation_items
from casewright.finetune.examples.tevo import Evolved
from casewright.finetune.examples.tool_pools import ToolPool
from casewright.finetune.examples.toolset_examples import toolset_examples
from casewright.finetune.examples.training_set import TrainingSet
from casewright.finetune.examples.ttg import tasks_of
from casewright.finetune.folds import similarity_groups
from casewright.finetune.instructions import instructions, read_sources
from casewright.finetune.queries.choose import choose_queries
from casewright.finetune.recipe.data_section import DataSection
from casewright.planner import AnnotatedQuery
from casewright.stores import Encoder
from casewright.stores.progress import progress_bar
from casewright.tools import Toolbox, ToolSpec

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


@dataclass(frozen=True, slots=True)
class Ingredients:
    """What a recipe's ``[data]`` names, read.

    Attributes:
        queries: Annotated queries with gold plans for the toolbox.
        toolbox: The tools.
        pools: Other names and descriptions, by tool.
        distractors: Tools that no plan needs.
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
    queries of the training side alone. Queries of public tool-use sets, and drills, are trained on
    alone, so that validation is of the toolbox that is planned for.

    Args:
        data: The recipe's section.
        given: What it names.
        encoder: Embeds questions, for neighbours, validation and sampling; not used where none of
            these is asked for.
        chat: Evolves instructions, where the recipe says that a chat model does.

    Raises:
        InputError: The queries do not fit the toolbox, or there are too few queries or instructions
            for what the recipe asks for, or a tool-use set cannot be read.
    """
    pool = query_pool(given.queries, given.toolbox, given.measuring)
    chosen = choose_queries(pool.queries, data.sampling, encoder, data.seed)
    held = _held(chosen, data, encoder)
    plans, held_plans = _plan_examples(data, given, chosen, held, encoder)
    foreign, toolsets = toolset_examples(
        data.toolsets,
        data.tevo,
        data.ttg,
        encoder,
        seed=data.seed,
        measuring=frozenset(map(plain, given.measuring)),
    )
    plans += foreign
    words = question_words(query.query for query in chosen)
    plans += drills(data.drills, words, data.seed)
    refused: Counter[str] = Counter()
    others = _instructions(data, len(plans), chat, refused)
    mixed = mix(
        plans, others, data.instructions.share, repeat=data.instructions.repeat, seed=data.seed
    )
    own = {example.id for example in plans}
    sides: dict[bool, list[TrainingExample]] = {False: [], True: []}
    for example in mixed:
        if example.id in own:
            side = example.id in held_plans
        else:
            # By what it was made from: an instruction and its evolution are not told apart.
            side = in_validation(example.source, data.validation, seed=data.seed)
        sides[side].append(example)
    train, validation = tuple(sides[False]), tuple(sides[True])
    made = Made(train, validation, chosen, len(held), pool, toolsets, refused)
    return TrainingSet(train, validation, manifest_of(made, data, given.toolbox, given.pools))


def _held(chosen: Sequence[AnnotatedQuery], data: DataSection, encoder: Encoder) -> frozenset[int]:
    """Return the queries that are for validation, by their places."""
    if not data.validation:
        return frozenset()
    groups = similarity_groups([query.query for query in chosen], encoder)
    return validation_items(groups, data.validation, seed=data.seed)


def _plan_examples(
    data: DataSection,
    given: Ingredients,
    chosen: Sequence[AnnotatedQuery],
    held: frozenset[int],
    encoder: Encoder,
) -> tuple[list[TrainingExample], set[str]]:
    """Return the examples of all queries, each once, and the ids of those for validation."""
    tevo = data.tevo
    neighbours = None
    if tevo.shots or (tevo.enabled and tevo.examples):
        shown = [query for place, query in enumerate(chosen) if place not in held]
        neighbours = Neighbours(shown, encoder)
    posing = Posing(given.toolbox, tevo, given.pools, neighbours, given.distractors)
    made: dict[str, list[TrainingExample]] = {str(query.record.id): [] for query in chosen}
    held_ids: set[str] = set()
    sides = [
        [query for place, query in enumerate(chosen) if (place in held) is side]
        for side in (False, True)
    ]
    with progress_bar("Making examples of queries", len(chosen) * data.copies) as advance:
        for side, queries in zip((False, True), sides, strict=True):
            # Apart: a head that is only validated with has been trained on by nobody.
            for copy, evolved, rng in posed(
                queries, posing, encoder, seed=data.seed, copies=data.copies
            ):
                for one in evolved:
                    examples = _examples_of(one, data, copy, rng)
                    made[str(one.query.record.id)] += examples
                    held_ids.update(example.id for example in examples if side)
                advance(len(evolved))
    # In the queries' order, whoever shared a toolbox with them.
    return without_duplicates(example for some in made.values() for example in some), held_ids


def _examples_of(
    evolved: Evolved, data: DataSection, copy: int, rng: random.Random
) -> list[TrainingExample]:
    examples = tasks_of(evolved, data.ttg, rng)
    if copy == 1:
        return examples
    return [replace(example, id=f"{example.id}@{copy}") for example in examples]


def _instructions(
    data: DataSection, plans: int, chat: BaseChatModel | None, refused: Counter[str]
) -> list[TrainingExample]:
    settings = data.instructions
    wanted = instructions_beside(plans, settings.share)
    if settings.repeat:
        # Fewer are not given: those that there are have to be counted before.
        there = len(read_sources(settings, random.Random(0), Counter()))
        wanted = min(wanted, there)
    return instructions(settings, wanted, data.seed, chat, refused=refused)
