"""Instructions of short and long prompts in equal shares."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from casewright.errors import InputError
from casewright.finetune.instructions.instruction import Instruction

T = TypeVar("T")


def equal_shares(
    instructions: Sequence[Instruction], bins: int, count: int, rng: random.Random
) -> list[Instruction]:
    """Return ``count`` instructions, the same number from every range of prompt length.

    What a range lacks is taken from the others in equal parts; what cannot be divided evenly goes
    to the shorter ones.

    Args:
        instructions: What there is.
        bins: Ranges, one or more.
        count: How many to return.
        rng: Which ones of a range, and in what order.

    Raises:
        InputError: There are fewer than ``count``.
    """
    if count > len(instructions):
        raise InputError(
            f"{count:,} instructions are asked for, and there are {len(instructions):,}. Ask for "
            "fewer, or add sources."
        )
    taken = list(islice(in_turns(length_ranges(instructions, bins, rng)), count))
    rng.shuffle(taken)
    return taken


def length_ranges(
    instructions: Sequence[Instruction], bins: int, rng: random.Random
) -> list[list[Instruction]]:
    """Return the instructions by prompt length, each range shuffled.

    The ranges are of equal width in the logarithm of the prompt's characters: quantiles would hold
    equally many instructions each, so that equal shares of them were a plain sample.
    """
    lengths = [math.log(max(len(one.prompt), 1)) for one in instructions]
    groups: list[list[Instruction]] = [[] for _ in range(bins)]
    low, high = min(lengths, default=0.0), max(lengths, default=0.0)
    width = (high - low) / bins or 1.0
    for one, length in zip(instructions, lengths, strict=True):
        groups[min(int((length - low) / width), bins - 1)].append(one)
    for group in groups:
        rng.shuffle(group)
    return groups


def in_turns(groups: Iterable[Iterable[T]]) -> Iterator[T]:
    """Yield one of each group in turn, until all have ended."""
    open_ = [iter(group) for group in groups]
    while open_:
        going = []
        for group in open_:
            for one in islice(group, 1):
                yield one
                going.append(group)
        open_ = going
