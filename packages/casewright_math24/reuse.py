"""Reuse: a case's plan carried over to other numbers (MCBR-RAG's Reuse, without a model).

A plan is a larger factor and the pair that made it. The pair at the same indices is tried first,
then the other five, as in the paper's hint to a language model. So trying decides if the case's
factor can be made at all; the case adds the factor to try first (the bench's controls measure the
gain).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from casewright_math24.decomposition import PAIRS, Class, pair_expressions
from casewright_math24.puzzle import GOAL, Problem


def attempts(
    problem: Problem, plans: Iterable[Class], *, other_pairs: bool = True
) -> Iterator[str]:
    """Yield an expression for each plan, in their order; an empty one for a plan that fails.

    Args:
        problem: The numbers to make 24 of.
        plans: Larger factors with the indices of their pairs, as in cases.
        other_pairs: Try pairs at other indices after the case's own.
    """
    for larger, *places in plans:
        pair = (places[0], places[1])
        others = [other for other in PAIRS if other != pair] if other_pairs else []
        yield _attempt(problem, larger, [pair, *others])


def _attempt(problem: Problem, larger: int, pairs: Iterable[tuple[int, int]]) -> str:
    for tried in pairs:
        rest = tuple(index for index in range(4) if index not in tried)
        first = pair_expressions(problem, tried, larger)
        other = pair_expressions(problem, rest, GOAL // larger)
        if first and other:
            return f"({first[0]}) * ({other[0]})"
    return ""
