"""Decompositions: solutions that are a product of two pairs, as cases have (MCBR-RAG, section 5).

One pair of the numbers makes 24, 12, 8 or 6, and the other pair makes 1, 2, 3 or 4. The class of a
decomposition is its larger factor, and the indices of the pair that makes it in the sorted problem.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations

from casewright_math24.answer import SIGNS, check, read_expression
from casewright_math24.puzzle import GOAL, Problem, all_problems

#: The larger factors.
CATEGORIES = (24, 12, 8, 6)
#: All pairs of indices.
PAIRS = tuple(combinations(range(4), 2))

#: A class: the larger factor, and the two indices of the pair that makes it.
Class = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Decomposition:
    """A product of two pairs that equals 24."""

    larger: int  # the larger factor, one of CATEGORIES
    pair: tuple[int, int]  # indices of the two numbers that make it; of equal numbers, the first
    larger_by: str  # an expression of this pair, which equals the larger factor
    smaller_by: str  # an expression of the other two numbers, which equals the smaller factor

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
        return f"({self.larger_by}) * ({self.smaller_by})"


def decompositions(problem: Problem) -> list[Decomposition]:
    """Return the decompositions of a problem, one for each class and pair of expressions."""
    solutions: dict[tuple[Class, str, str], Decomposition] = {}
    for pair in PAIRS:
        first, other = _values(problem, pair), _values(problem, _other_pair(pair))
        for larger in CATEGORIES:
            indices = _first_indices(problem, [problem[index] for index in pair])
            for larger_by in first.get(Fraction(larger), ()):
                for smaller_by in other.get(Fraction(GOAL, larger), ()):
                    solution = Decomposition(larger, indices, larger_by, smaller_by)
                    solutions.setdefault((solution.kind, larger_by, smaller_by), solution)
    return list(solutions.values())


def classes(problem: Problem) -> set[Class]:
    """Return the classes of a problem's decompositions."""
    return {solution.kind for solution in decompositions(problem)}


@cache
def decomposable_problems() -> tuple[Problem, ...]:
    """Return the problems with a decomposition: 527 of 1,820."""
    return tuple(problem for problem in all_problems() if decompositions(problem))


def product_of_pairs(expression: str, problem: Problem) -> Decomposition | None:
    """Return an expression as a decomposition; ``None`` if it is wrong, or no product of pairs."""
    if not check(expression, problem).right:
        return None
    tree = ast.parse(expression.translate(SIGNS), mode="eval").body
    if not isinstance(tree, ast.BinOp) or not isinstance(tree.op, ast.Mult):
        return None
    sides = [(*read_expression(side), ast.unparse(side)) for side in (tree.left, tree.right)]
    (larger, pair, larger_by), (_, rest, smaller_by) = sorted(sides, key=lambda side: -side[0])
    if len(pair) != 2 or len(rest) != 2 or larger not in CATEGORIES:
        return None
    return Decomposition(int(larger), _first_indices(problem, pair), larger_by, smaller_by)


def attempts(
    problem: Problem, plans: Iterable[Class], *, other_pairs: bool = True
) -> Iterator[str]:
    """Yield attempts at a problem with the plans of cases (MCBR-RAG's Reuse, without a model).

    The pair at the plan's indices is tried first, then the other five pairs, as in the paper's hint
    to a language model. A plan thus succeeds if any pair makes its larger factor: the case
    contributes only the factor (the bench's controls measure the gain).

    Args:
        plans: Classes of the cases' decompositions.
        other_pairs: False to try only the pair at the plan's indices.

    Yields:
        An expression for each plan, in the plans' order; an empty text if a plan fails.
    """
    for larger, *pair_indices in plans:
        pair = (pair_indices[0], pair_indices[1])
        others = [other for other in PAIRS if other != pair] if other_pairs else []
        yield _attempt(problem, larger, [pair, *others])


def _attempt(problem: Problem, larger: int, pairs: Iterable[tuple[int, int]]) -> str:
    for pair in pairs:
        first = _values(problem, pair).get(Fraction(larger))
        other = _values(problem, _other_pair(pair)).get(Fraction(GOAL, larger))
        if first and other:
            return f"({first[0]}) * ({other[0]})"
    return ""


def _other_pair(pair: tuple[int, ...]) -> tuple[int, ...]:
    """Return the indices of the two numbers that are not in a pair."""
    return tuple(index for index in range(4) if index not in pair)


def pair_values(first: int, second: int) -> set[Fraction]:
    """Return the results of one operation on two numbers, in either order."""
    return {value for value, _ in _operations(first, second)}


def _operations(first: int, second: int) -> Iterator[tuple[Fraction, str]]:
    """Yield the results of one operation on two numbers, in either order, with expressions."""
    yield Fraction(first + second), f"{first} + {second}"
    yield Fraction(first * second), f"{first} * {second}"
    yield Fraction(first - second), f"{first} - {second}"
    yield Fraction(second - first), f"{second} - {first}"
    # The numbers of a puzzle are at least 1, so no operand is 0.
    yield Fraction(first, second), f"{first} / {second}"
    yield Fraction(second, first), f"{second} / {first}"


def _values(problem: Problem, pair: tuple[int, ...]) -> dict[Fraction, list[str]]:
    """Return the values of a pair, each with its expressions."""
    values: dict[Fraction, list[str]] = {}
    for value, expression in _operations(problem[pair[0]], problem[pair[1]]):
        expressions = values.setdefault(value, [])
        if expression not in expressions:
            expressions.append(expression)
    return values


def _first_indices(problem: Problem, numbers: Sequence[int]) -> tuple[int, int]:
    """Return the indices of two numbers in a problem; of equal numbers, the lowest indices."""
    low, high = sorted(numbers)
    first = problem.index(low)
    return first, problem.index(high, first + 1)
