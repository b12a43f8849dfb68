"""An exact solver: which problems can make 24, and how."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cache
from itertools import combinations

from casewright_math24.puzzle import GOAL, Problem, all_problems, problem_of

#: Value to an expression that has it.
Values = Mapping[Fraction, str]


def solve(numbers: tuple[int, ...]) -> str | None:
    """Return an expression of the four numbers, each once, that is 24; ``None`` if there is none.

    Raises:
        InputError: They are no problem.
    """
    return _solution(problem_of(numbers))


@cache
def solvable_problems() -> tuple[Problem, ...]:
    """Return the problems that can be solved: 1,362 of 1,820."""
    return tuple(problem for problem in all_problems() if _solution(problem) is not None)


def combined(
    left: tuple[Fraction, str], right: tuple[Fraction, str]
) -> Iterator[tuple[Fraction, str]]:
    """Yield what two values make by one operation, in either order, each with its expression."""
    (a, first), (b, second) = left, right
    yield a + b, f"({first} + {second})"
    yield a * b, f"{first} * {second}"
    yield a - b, f"({first} - {second})"
    yield b - a, f"({second} - {first})"
    if b:
        yield a / b, f"{first} / {_divisor(second)}"
    if a:
        yield b / a, f"{second} / {_divisor(first)}"


def _divisor(expression: str) -> str:
    # What is multiplied or divided stands without brackets elsewhere.
    bare = expression.startswith("(") and expression.endswith(")")
    return expression if bare or expression.isdigit() else f"({expression})"


def _solution(problem: Problem) -> str | None:
    for left, right in _splits(problem):
        others = _values(right)
        for value, expression in _values(left).items():
            for wanted in _completions(value):
                if (other := others.get(wanted)) is None:
                    continue
                for made, whole in combined((value, expression), (wanted, other)):
                    if made == GOAL:
                        return _without_brackets(whole)
    return None


@cache
def _values(numbers: tuple[int, ...]) -> Values:
    """Return what these numbers can make, each used once; the same few stand in many problems."""
    if len(numbers) == 1:
        return {Fraction(numbers[0]): str(numbers[0])}
    found: dict[Fraction, str] = {}
    for left, right in _splits(numbers):
        for one in _values(left).items():
            for other in _values(right).items():
                for value, expression in combined(one, other):
                    found.setdefault(value, expression)
    return found


def _splits(numbers: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield the ways to split numbers in two parts, each once."""
    places = range(len(numbers))
    for size in range(1, len(numbers) // 2 + 1):
        for left in combinations(places, size):
            if 2 * size == len(numbers) and 0 not in left:
                continue
            yield (
                tuple(numbers[place] for place in left),
                tuple(numbers[place] for place in places if place not in left),
            )


def _completions(value: Fraction) -> Iterator[Fraction]:
    """Yield what makes 24 with a value by one operation, in either order."""
    yield GOAL - value
    yield GOAL + value
    yield value - GOAL
    yield value * GOAL
    yield value / GOAL
    if value:
        yield GOAL / value


def _without_brackets(expression: str) -> str:
    """Take off the brackets around the whole expression, where they are a pair."""
    if not expression.startswith("("):
        return expression
    depth = 0
    for place, sign in enumerate(expression):
        depth += (sign == "(") - (sign == ")")
        if not depth:
            return expression[1:-1] if place == len(expression) - 1 else expression
    return expression
