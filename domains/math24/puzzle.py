"""The puzzles of Math-24: four numbers from 1 to 13 that are to make 24."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement

from casewright.errors import InputError

#: What the numbers are to make.
GOAL = 24
#: The largest number on a card: a king.
LARGEST = 13

Problem = tuple[int, int, int, int]


def problem_of(numbers: Sequence[int]) -> Problem:
    """Return four numbers as a problem, ascending.

    Raises:
        InputError: They are not four whole numbers from 1 to 13.
    """
    given = list(numbers)
    whole = [type(n) is int for n in given]
    if len(given) != 4 or not all(whole) or not all(1 <= n <= LARGEST for n in given):
        raise InputError(
            f"{given!r:.80} is no Math-24 puzzle. Give four whole numbers from 1 to {LARGEST}."
        )
    first, second, third, fourth = sorted(int(n) for n in given)
    return first, second, third, fourth


def all_problems() -> list[Problem]:
    """Return all 1,820 problems, each once, in order."""
    return [problem_of(made) for made in combinations_with_replacement(range(1, LARGEST + 1), 4)]
