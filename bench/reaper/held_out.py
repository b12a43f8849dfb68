"""Queries that the studies keep from training, and the questions that they then ask."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from casewright.errors import InputError
from casewright.finetune.evaluation import MULTI_STEP, items_of
from casewright.finetune.folds import similarity_groups
from casewright.planner import AnnotatedQuery
from casewright.stores import Encoder
from casewright.tools import Toolbox

#: Of the shapes of several steps, from the second most frequent on, each fourth is held out: some
#: that are frequent, and many that are not.
FIRST_SHAPE, EVERY = 1, 4

Shape = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Halves:
    """Queries that are held out, dealt in two; like questions are on one side.

    Attributes:
        asked: To measure by.
        shown: To show as plan cases, or to add to a training.
    """

    asked: tuple[AnnotatedQuery, ...]
    shown: tuple[AnnotatedQuery, ...]


def held_shapes(queries: Sequence[AnnotatedQuery]) -> frozenset[Shape]:
    """Return the sequences of tools that are to be new: a fourth of those of several steps."""
    counts = Counter(query.plan.tools for query in queries if query.label == MULTI_STEP)
    ranked = sorted(counts, key=lambda shape: (-counts[shape], shape))
    return frozenset(ranked[FIRST_SHAPE::EVERY])


def of_shapes(
    queries: Sequence[AnnotatedQuery], shapes: Collection[Shape]
) -> tuple[AnnotatedQuery, ...]:
    """Return the queries whose plans have one of these shapes."""
    return tuple(query for query in queries if query.plan.tools in shapes)


def own_tools(queries: Sequence[AnnotatedQuery], toolbox: Toolbox) -> tuple[AnnotatedQuery, ...]:
    """Return the queries whose plan calls a tool that their record alone brings along."""
    return tuple(item.query for item in items_of(queries, toolbox) if item.new_tools)


def halves(queries: Sequence[AnnotatedQuery], asked: int, encoder: Encoder, seed: int) -> Halves:
    """Deal queries: about ``asked`` of them, in groups of like questions, are to be asked.

    Args:
        queries: To deal.
        asked: Most questions; never more than half of the queries, but for the first group.
        encoder: Tells which are alike.
        seed: Of the order of the groups.

    Raises:
        InputError: There are fewer than two groups.
    """
    members: dict[int, list[AnnotatedQuery]] = defaultdict(list)
    numbers = similarity_groups([query.query for query in queries], encoder)
    for query, number in zip(queries, numbers, strict=True):
        members[number].append(query)
    if len(members) < 2:
        raise InputError(
            f"Of {len(queries)} queries that a study holds out, no two differ enough to measure by "
            "one and to show the other. Give more annotated queries."
        )
    groups = list(members.values())
    random.Random(seed).shuffle(groups)
    most = min(asked, len(queries) // 2)
    first: list[AnnotatedQuery] = []
    second: list[AnnotatedQuery] = []
    for group in groups:
        (first if not first or len(first) + len(group) <= most else second).extend(group)
    return Halves(tuple(first), tuple(second))
