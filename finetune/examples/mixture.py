"""The mixture of plan examples and generic instructions (REAPER, Joshi et al. 2024, Table 3).

The table varies two settings: the share of generic instructions (IFT) in the whole set, here
``share``, and the tasks per query with the primary one counted, ``tasks_per_query`` of TTG.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace

from casewright.errors import InputError
from casewright.finetune.examples.example import TrainingExample


def instructions_beside(plans: int, share: float) -> int:
    """Return how many instructions make up a share of the set that they form with plan examples.

    Args:
        plans: Number of plan examples, of the primary and of secondary tasks.
        share: Of instructions in the whole set, from 0 and below 1.

    Raises:
        InputError: The share is none.
    """
    if not 0 <= share < 1:
        raise InputError(
            f"The share of instructions is {share}. Give one from 0 and below 1: the rest of the "
            "set are plan examples."
        )
    return round(share / (1 - share) * plans)


def mix(
    plans: Sequence[TrainingExample],
    instructions: Sequence[TrainingExample],
    share: float,
    *,
    repeat: bool = False,
    seed: int = 0,
) -> list[TrainingExample]:
    """Return all plan examples with as many instructions as make up the share, in random order.

    Args:
        plans: Examples of the primary and the secondary tasks.
        instructions: What may be taken; some of them, where there are more than are needed.
        share: Of instructions in the whole set, from 0 and below 1.
        repeat: Take instructions again where there are too few; the second time ``#2`` is added to
            the id.
        seed: Of the choice and of the order.

    Raises:
        InputError: The share is none, or there are too few instructions.
    """
    wanted, there = instructions_beside(len(plans), share), len(instructions)
    if wanted > there and not (repeat and there):
        most = there / (there + len(plans))
        raise InputError(
            f"A share of {share:g} needs {wanted:,} instructions beside {len(plans):,} plan "
            f"examples, and there are {there:,}: a share of {most:.3f}. Lower the share, add "
            "sources" + (", or let instructions repeat." if there else ".")
        )
    draw = random.Random(f"{seed}:mixture")
    mixed = list(plans)
    for turn in range(1, 1 + -(-wanted // there) if wanted else 1):
        left = min(there, wanted - there * (turn - 1))
        # In the order in which they were given, so that the choice alone is random.
        for place in sorted(draw.sample(range(there), left)):
            one = instructions[place]
            mixed.append(one if turn == 1 else replace(one, id=f"{one.id}#{turn}"))
    draw.shuffle(mixed)
    return mixed


def without_duplicates(examples: Iterable[TrainingExample]) -> list[TrainingExample]:
    """Return the examples, of those with one prompt and completion only the first."""
    first: dict[tuple[str, str, str], TrainingExample] = {}
    for example in examples:
        # Not the whole prompt as one text: many examples share their head's.
        key = (example.prompt.head, example.prompt.tail, example.completion)
        first.setdefault(key, example)
    return list(first.values())
