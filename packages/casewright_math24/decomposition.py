"""Decompositions: solutions that are a product of two pairs (MCBR-RAG, section 5).

Cases have only such solutions. One pair of numbers makes the larger factor (24, 12, 8 or 6), and
the other pair makes the smaller one. The class of a decomposition is its larger factor, with the
indices of this factor's pair in the sorted numbers. A class that another puzzle reuses is a plan.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations, combinations_with_replacement

from casewright_math24.answer import SIGNS, check, read_expression
from casewright_math24.puzzle import GOAL, LARGEST, Problem

LARGER_FACTORS = (24, 12, 8, 6)
#: All pairs of indices.
PAIRS = tuple(combinations(range(4), 2))

#: A class: the larger factor, and the two indices of the pair that makes this factor.
Class = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Decomposition:
    """A product of two pairs that equals 24."""

    larger: int  # the larger factor
    pair: tuple[int, int]  # indices of the larger factor's numbers; the lowest if two are equal
    larger_expression: str  # an expression of this pair; it equals the larger factor
    smaller_expression: str  # an expression of the other two numbers

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
        """The expression of all four numbers, which equals 24."""
        return f"({self.larger_expression}) * ({self.smaller_expression})"


def decompositions(problem: Problem) -> list[Decomposition]:
    """Return the decompositions of a problem without duplicates."""
    solutions = []
    for pair in PAIRS:
        pair_results = pair_values(problem, pair)
        other_results = pair_values(problem, _other_pair(pair))
        indices = _lowest_indices(problem, [problem[index] for index in pair])
        for larger in LARGER_FACTORS:
            for expression in pair_results.get(Fraction(larger), ()):
                for other_expression in other_results.get(Fraction(GOAL, larger), ()):
                    solutions.append(Decomposition(larger, indices, expression, other_expression))
    # If two of the four numbers are equal, several pairs give the same decomposition.
    return list(dict.fromkeys(solutions))


def classes(problem: Problem) -> set[Class]:
    """Return the classes of a problem's decompositions."""
    return {solution.kind for solution in decompositions(problem)}


@cache
def decomposable_problems() -> tuple[Problem, ...]:
    """Return the problems with a decomposition: 527 of 1,820."""
    problems = combinations_with_replacement(range(1, LARGEST + 1), 4)
    return tuple(problem for problem in problems if decompositions(problem))


def product_of_pairs(expression: str, problem: Problem) -> Decomposition | None:
    """Return an expression as a decomposition; ``None`` if it is wrong or has another form."""
    if not check(expression, problem).right:
        return None
    tree = ast.parse(expression.translate(SIGNS), mode="eval").body
    if not isinstance(tree, ast.BinOp) or not isinstance(tree.op, ast.Mult):
        return None
    factors = [(*read_expression(side), ast.unparse(side)) for side in (tree.left, tree.right)]
    factors.sort(key=lambda factor: -factor[0])
    (larger, numbers, larger_expression), (_, other_numbers, smaller_expression) = factors
    if len(numbers) != 2 or len(other_numbers) != 2 or larger not in LARGER_FACTORS:
        return None
    indices = _lowest_indices(problem, numbers)
    return Decomposition(int(larger), indices, larger_expression, smaller_expression)


def attempts(
    problem: Problem, plans: Iterable[Class], *, other_pairs: bool = True
) -> Iterator[str]:
    """Yield an expression for each plan in order, or an empty text if a plan gives no solution.

    This is MCBR-RAG's Reuse without a model. The pair at the plan's indices is tried first, then
    the other five pairs, as in the paper's hint to a language model. So only the plan's larger
    factor comes from the case. The benchmark has controls that try the same factor for all puzzles.
    With ``other_pairs=False``, the other five pairs are not tried.
    """
    for larger, first, second in plans:
        pair = (first, second)
        later_pairs = [other for other in PAIRS if other != pair] if other_pairs else []
        yield _first_product(problem, larger, [pair, *later_pairs])


def _first_product(problem: Problem, larger: int, pairs: Iterable[tuple[int, int]]) -> str:
    """Return the first possible product with this larger factor, or an empty text."""
    for pair in pairs:
        expressions = pair_values(problem, pair).get(Fraction(larger))
        other_expressions = pair_values(problem, _other_pair(pair)).get(Fraction(GOAL, larger))
        if expressions and other_expressions:
            return f"({expressions[0]}) * ({other_expressions[0]})"
    return ""


def _other_pair(pair: tuple[int, ...]) -> tuple[int, ...]:
    """Return the indices of the two numbers that are not in a pair."""
    return tuple(index for index in range(4) if index not in pair)


def pair_values(problem: Problem, pair: tuple[int, ...]) -> dict[Fraction, list[str]]:
    """Return the expressions of one operation on a pair of numbers, by their results."""
    first, second = (problem[index] for index in pair)
    # The numbers of a puzzle are at least 1, so no division fails.
    results = [
        (Fraction(first + second), f"{first} + {second}"),
        (Fraction(first * second), f"{first} * {second}"),
        (Fraction(first - second), f"{first} - {second}"),
        (Fraction(second - first), f"{second} - {first}"),
        (Fraction(first, second), f"{first} / {second}"),
        (Fraction(second, first), f"{second} / {first}"),
    ]
    expressions: dict[Fraction, list[str]] = {}
    for value, expression in dict.fromkeys(results):
        expressions.setdefault(value, []).append(expression)
    return expressions


def _lowest_indices(problem: Problem, numbers: Sequence[int]) -> tuple[int, int]:
    """Return the lowest indices of two numbers in a problem."""
    low, high = sorted(numbers)
    first = problem.index(low)
    return first, problem.index(high, first + 1)
