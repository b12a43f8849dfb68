"""A budget as commands take it: NAME=NUMBER."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from casewright.errors import InputError


def read_budget(option: str, texts: Sequence[str] | None) -> dict[str, Any]:
    """Return the budget of an option's texts, as ``RunContext.limits`` takes it.

    A name that is no budget's is a tool's, whose calls it bounds.

    Raises:
        InputError: A text is not NAME=NUMBER, or its number is none that the budget takes.
    """
    from casewright.graph.limits import BUDGET, Limits

    budget: dict[str, Any] = {}
    for text in texts or ():
        name, _, number = text.partition("=")
        try:
            value = json.loads(number)
        except (ValueError, RecursionError):
            value = None
        if not name or isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(
                f"{option} {text:.80} is no budget. Write NAME=NUMBER, such as calls=3; names are "
                f"{', '.join(BUDGET[:-1])}, and those of tools."
            )
        if name in BUDGET[:-1]:
            budget[name] = value
        else:
            budget.setdefault("tool_calls", {})[name] = value
    Limits().within(budget)
    return budget
