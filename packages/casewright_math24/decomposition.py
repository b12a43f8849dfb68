"""Solutions that are a product of two pairs: what a case of Math-24 knows (MCBR-RAG, section 5).

One pair of the numbers makes 24, 12, 8 or 6, the other 1, 2, 3 or 4. A decomposition's class is the
larger factor with the places of the pair that makes it, in the ascending problem.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations

from casewright_math24.puzzle import GOAL, Problem, all_problems
from casewright_math24.solver import combined

#: The larger factors.
CATEGORIES = (24, 12, 8, 6)
#: Places of the pair that makes the larger factor.
PAIRS = tuple(combinations(range(4), 2))

#: Larger factor, and the two places of the pair that makes it.
Class = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Decomposition:
    """A product of two pairs that is 24.

    Attributes:
        larger: The larger factor, one of ``CATEGORIES``.
        pair: Places of the two numbers that make it; of equal numbers the first ones.
        made_by: An expression of the pair that is the larger factor.
        rest_by: An expression of the other two that is the smaller one.
    """

    larger: int
    pair: tuple[int, int]
    made_by: str
    rest_by: str

    @property
    def smaller(self) -> int:
        """The smaller factor."""
        return GOAL // self.larger

    @property
    def kind(self) -> Class:
        """The decomposition's class."""
        return (self.larger, *self.pair)

    @property
    def expression(self) -> str:
        """All four numbers as one expression that is 24."""
        return f"{_bracketed(self.made_by)} * {_bracketed(self.rest_by)}"


def decompositions(problem: Problem) -> list[Decomposition]:
    """Return a problem's decompositions, one for each class and way to make its factors."""
    found: dict[tuple[Class, str, str], Decomposition] = {}
    for pair in PAIRS:
        rest = tuple(place for place in range(4) if place not in pair)
        made, other = _values(problem, pair), _values(problem, rest)
        for larger in CATEGORIES:
            places = first_places(problem, [problem[place] for place in pair])
            for made_by in made.get(Fraction(larger), ()):
                for rest_by in other.get(Fraction(GOAL, larger), ()):
                    one = Decomposition(larger, places, made_by, rest_by)
                    found.setdefault((one.kind, made_by, rest_by), one)
    return list(found.values())


def classes(problem: Problem) -> set[Class]:
    """Return the classes of a problem's decompositions; none where it has no product of pairs."""
    return {one.kind for one in decompositions(problem)}


@cache
def decomposable_problems() -> tuple[Problem, ...]:
    """Return the problems with a product of pairs: 527 of 1,820."""
    return tuple(problem for problem in all_problems() if decompositions(problem))


def pair_expressions(problem: Problem, pair: tuple[int, ...], wanted: int) -> list[str]:
    """Return the expressions by which two of a problem's numbers make a number."""
    return list(_values(problem, pair).get(Fraction(wanted), ()))


def pair_values(first: int, second: int) -> set[Fraction]:
    """Return what two numbers make by one operation, in either order."""
    return {value for value, _ in _ways(first, second)}


def _ways(first: int, second: int) -> Iterator[tuple[Fraction, str]]:
    return combined((Fraction(first), str(first)), (Fraction(second), str(second)))


def _values(problem: Problem, pair: tuple[int, ...]) -> dict[Fraction, list[str]]:
    made: dict[Fraction, list[str]] = {}
    for value, expression in _ways(problem[pair[0]], problem[pair[1]]):
        ways = made.setdefault(value, [])
        plain = expression.removeprefix("(").removesuffix(")")
        if plain not in ways:
            ways.append(plain)
    return made


def first_places(problem: Problem, numbers: Sequence[int]) -> tuple[int, int]:
    """Return the places of two of a problem's numbers, of equal ones the first that are free."""
    low, high = sorted(numbers)
    first = problem.index(low)
    rest = [*problem[:first], *problem[first + 1 :]]
    return first, rest.index(high) + 1


def _bracketed(expression: str) -> str:
    return f"({expression})"
