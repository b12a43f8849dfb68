"""From annotated queries and a toolbox to a training set (REAPER, Joshi et al. 2024, section 3)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from casewright.finetune.examples.example import TrainingExample
from casewright.finetune.examples.manifest import Made, manifest_of
from casewright.finetune.examples.mixture import instructions_beside, mix, without_duplicates
from casewright.finetune.examples.query_pool import query_pool
from casewright.finetune.examples.shots import Neighbours
from casewright.finetune.examples.split import in_validation, validation_items
from casewright.finetune.examples.tevo import evolve
from casewright.finetune.examples.tool_pools import ToolPool
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
    """Make a training set: sampling, TEvo, TTG, instructions, mixture, validation.

    The same arguments make the same set, byte for byte. What is drawn for a query depends on the
    seed, its id and the queries beside it, not on its place. All examples of a query, and of the
    queries most like it, are for training or all for validation; plan cases shown in prompts are
    queries of the training side alone.

    Args:
        data: The recipe's section.
        given: What it names.
        encoder: Embeds questions, for neighbours, validation and sampling; not used where none of
            these is asked for.
        chat: Evolves instructions, where the recipe says that a chat model does.

    Raises:
        InputError: The queries do not fit the toolbox, or there are too few queries or instructions
            for what the recipe asks for.
    """
    pool = query_pool(given.queries, given.toolbox, given.measuring)
    chosen = choose_queries(pool.queries, data.sampling, encoder, data.seed)
    held = _held(chosen, data, encoder)
    plans, held_plans = _plan_examples(data, given, chosen, held, encoder)
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
    made = Made(train, validation, chosen, len(held), pool, refused)
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
    made: list[TrainingExample] = []
    held_ids: set[str] = set()
    with progress_bar("Making examples of queries", len(chosen)) as advance:
        for place, query in enumerate(chosen):
            for example in _examples_of(query, data, given, neighbours):
                made.append(example)
                if place in held:
                    held_ids.add(example.id)
            advance(1)
    return without_duplicates(made), held_ids


def _examples_of(
    query: AnnotatedQuery, data: DataSection, given: Ingredients, neighbours: Neighbours | None
) -> Iterator[TrainingExample]:
    for copy in range(1, data.copies + 1):
        # A text, which Python's random numbers hash the same way in every process.
        rng = random.Random(f"{data.seed}:{query.record.id}:{copy}")
        evolved = evolve(
            query,
            given.toolbox,
            data.tevo,
            given.pools,
            neighbours,
            rng,
            distractors=given.distractors,
        )
        for example in tasks_of(evolved, data.ttg, rng):
            yield example if copy == 1 else replace(example, id=f"{example.id}@{copy}")


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
