"""Parsing of a command's budget, given as NAME=NUMBER."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from casewright.errors import InputError


def read_budget(option: str, texts: Sequence[str] | None) -> dict[str, Any]:
    """Return the budget in an option's texts, in the form of ``RunContext.limits``.

    A name that is not a field of the budget is a tool's name; its number limits the calls.

    Raises:
        InputError: A text is not NAME=NUMBER, or the budget does not allow its number.
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
                f"{option} {text:.80} is not a budget. Write NAME=NUMBER, such as calls=3; a name "
                f"is one of {', '.join(BUDGET[:-1])}, or that of a tool."
            )
        if name in BUDGET[:-1]:
            budget[name] = value
        else:
            budget.setdefault("tool_calls", {})[name] = value
    Limits().within(budget)
    return budget
