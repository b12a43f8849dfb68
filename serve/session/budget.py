"""Parsing of the budget that a command is given as NAME=NUMBER."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from casewright.errors import InputError


def read_budget(option: str, texts: Sequence[str] | None) -> dict[str, Any]:
    """Return the budget that an option's texts describe, in the form of ``RunContext.limits``.

    A name that is no field of the budget is read as a tool's name; its number bounds the calls.

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
                f"{option} {text:.80} is no budget. Write NAME=NUMBER, such as calls=3; names are "
                f"{', '.join(BUDGET[:-1])}, and the names of tools."
            )
        if name in BUDGET[:-1]:
            budget[name] = value
        else:
            budget.setdefault("tool_calls", {})[name] = value
    Limits().within(budget)
    return budget
