"""Reuse: a case's plan carried over to other numbers (MCBR-RAG's Reuse, without a model).

A case says which pair made which factor. The pair at the same places is tried first, then the
other five, as the paper's hint to a language model has it. So whether the case's factor can be made
at all is solved by trying; what a case adds is which factor to try first (the bench's controls say
how much that is).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from casewright_math24.decomposition import PAIRS, Class, pair_expressions
from casewright_math24.puzzle import GOAL, Problem


def attempts(
    problem: Problem, plans: Iterable[Class], *, other_pairs: bool = True
) -> Iterator[str]:
    """Yield an expression for each plan, in their order; an empty one where it leads nowhere.

    Args:
        problem: The numbers to make 24 of.
        plans: Larger factors with the places of their pairs, as cases have them.
        other_pairs: Whether the pairs at other places than the case's are tried after its own.
    """
    for larger, *places in plans:
        pair = (places[0], places[1])
        others = [other for other in PAIRS if other != pair] if other_pairs else []
        yield _attempt(problem, larger, [pair, *others])


def _attempt(problem: Problem, larger: int, pairs: Iterable[tuple[int, int]]) -> str:
    for tried in pairs:
        rest = tuple(place for place in range(4) if place not in tried)
        made = pair_expressions(problem, tried, larger)
        other = pair_expressions(problem, rest, GOAL // larger)
        if made and other:
            return f"({made[0]}) * ({other[0]})"
    return ""
