"""Puzzles of Math-24: four numbers from 1 to 13 that are to make 24."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from casewright.errors import InputError

#: The number that the four numbers are to make.
GOAL = 24
#: The largest number on a card; in a card game, the number of a king.
LARGEST = 13

#: The four numbers of a puzzle, in ascending order; only ``checked_numbers`` keeps another order.
Problem = tuple[int, int, int, int]


def checked_numbers(numbers: Sequence[int]) -> Problem:
    """Return four numbers unchanged; ``InputError`` if they are not four integers from 1 to 13."""
    try:
        if any(isinstance(number, bool) for number in numbers):
            raise TypeError
        first, second, third, fourth = values = [operator.index(number) for number in numbers]
        if not all(1 <= value <= LARGEST for value in values):
            raise ValueError
    except (TypeError, ValueError):
        text = repr(numbers)
        raise InputError(
            f"Math-24 has four whole numbers from 1 to 13, not {text[:60]}"
            f"{'…' if len(text) > 60 else ''}. Give four, for example [4, 7, 8, 8]."
        ) from None
    return first, second, third, fourth


def problem_of(numbers: Sequence[int]) -> Problem:
    """Return four numbers in ascending order; see ``checked_numbers`` for errors."""
    first, second, third, fourth = sorted(checked_numbers(numbers))
    return first, second, third, fourth
