"""Whether the value that a plan gives for an argument is the annotated one."""

from __future__ import annotations

from collections.abc import Sequence

from casewright.planner import Literal
from casewright.planner.plan import Value
from casewright.planner.spans import normalized


def value_right(gold: Value, given: Value, must: Sequence[str]) -> bool:
    """Say whether an argument is right.

    Args:
        gold: The annotated one.
        given: The plan's own.
        must: The lower-case words that a text must contain instead of being the annotated one.
    """
    if not isinstance(gold, Literal) or not isinstance(gold.value, str):
        return gold == given
    # The whole question holds every word, and is not the short literal that was asked for.
    if not isinstance(given, Literal) or not isinstance(given.value, str):
        return False
    text = normalized(given.value)
    return all(word in text for word in must) if must else text == normalized(gold.value)
