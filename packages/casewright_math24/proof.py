"""Which product of two pairs an expression is, whoever wrote it."""

from __future__ import annotations

import ast

from casewright_math24.answer import SIGNS, check, read_expression
from casewright_math24.decomposition import CATEGORIES, Decomposition, first_places
from casewright_math24.puzzle import Problem


def product_of_pairs(expression: str, problem: Problem) -> Decomposition | None:
    """Return an expression as a decomposition; ``None`` where it is wrong, or of another form."""
    if not check(expression, problem).right:
        return None
    whole = ast.parse(expression.translate(SIGNS), mode="eval").body
    if not isinstance(whole, ast.BinOp) or not isinstance(whole.op, ast.Mult):
        return None
    sides = [(*read_expression(side), ast.unparse(side)) for side in (whole.left, whole.right)]
    (larger, pair, made_by), (_, rest, rest_by) = sorted(sides, key=lambda side: -side[0])
    if len(pair) != 2 or len(rest) != 2 or larger not in CATEGORIES:
        return None
    return Decomposition(int(larger), first_places(problem, pair), made_by, rest_by)
