"""Parses the values of command options: context, history, budget, scope, NAME=VALUE pairs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casewright.errors import InputError
from casewright.planner.request import Turn, check_context, check_history
from casewright.serve.session.scopes import ScopeFields, scope_of

if TYPE_CHECKING:
    from casewright.planner import PinnedPlan


def read_context(text: str | None) -> dict[str, Any]:
    """Return the context of a JSON text, ``{}`` for ``None``; raise ``InputError`` if invalid."""
    if text is None:
        return {}
    try:
        context = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f'--context is not JSON: {error}. Give an object such as {{"product_id": "P001"}}.'
        ) from error
    check_context(context)
    return dict(context)


def read_history(file: Path | None) -> list[Turn]:
    """Return the earlier turns in a JSON file; ``[]`` without a file."""
    if file is None:
        return []
    try:
        turns = json.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(f"--history {file} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"--history {file} is not JSON: {error}. Write "
            '[{"question": "…", "answer": "…"}, …], the earliest first.'
        ) from error
    check_history(turns)
    return [Turn(question=turn["question"], answer=turn["answer"]) for turn in turns]


def read_budget(option: str, texts: Sequence[str] | None) -> dict[str, Any]:
    """Return the budget of an option's NAME=NUMBER texts, in the form of ``RunContext.limits``.

    A name that is not a field of the budget is a tool's name; the number limits the tool's calls.
    Raise ``InputError`` if a text is not NAME=NUMBER, or the number is not valid.
    """
    from casewright.graph.limits import BUDGET, Limits

    fields = [field for field in BUDGET if field != "tool_calls"]
    budget: dict[str, Any] = {}
    for text in texts or ():
        name, _, number = text.partition("=")
        value = json_or_text(number)
        if not name or isinstance(value, bool | str):
            raise InputError(
                f"{option} {text:.80} is not a budget. Write NAME=NUMBER, such as calls=3; a name "
                f"is one of {', '.join(fields)}, or that of a tool."
            )
        if name in fields:
            budget[name] = value
        else:
            budget.setdefault("tool_calls", {})[name] = value
    Limits().within(budget)  # Raises ``InputError`` for an invalid number.
    return budget


def command_scope(
    fields: ScopeFields, texts: Sequence[str] | None, values: Mapping[str, str], tenant: str | None
) -> dict[str, str]:
    """Return the scope that a command line gives, with the tenant.

    Args:
        fields: The valid values of each scope field.
        texts: Texts of the form ``FIELD=VALUE``.
        values: Values of scope fields that have their own options, such as ``--customer``.
        tenant: The tenant, which tools read from the scope.
    """
    pairs = [*(texts or ()), *(f"{field}={value}" for field, value in values.items())]
    scope = read_pairs("--scope", pairs)
    if empty := [field for field, value in scope.items() if not value]:
        raise InputError(f"--scope {empty[0]}= has no value. Write FIELD=VALUE.")
    scope = scope_of(fields, scope, list_values=True)
    if tenant is None:
        return scope
    if not tenant.strip():
        raise InputError("--tenant is empty. Name the tenant whose cases the tools look up.")
    return {**scope, "tenant": tenant}


def read_pairs(option: str, texts: Sequence[str] | None) -> dict[str, str]:
    """Return the values of an option's ``NAME=VALUE`` texts by name; refuse a name given twice."""
    pairs: dict[str, str] = {}
    for text in texts or ():
        name, separator, value = text.partition("=")
        if not (name and separator):
            raise InputError(f"{option} {text:.80} lacks a name or a value. Write NAME=VALUE.")
        if name in pairs:
            raise InputError(f"{option} gives {name:.80} twice. Give it once.")
        pairs[name] = value
    return pairs


def json_or_text(text: str) -> Any:
    """Return the string, number or boolean of a JSON text; other texts are returned unchanged."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, str | int | float) else text


def read_values(pinned: PinnedPlan, texts: Sequence[str] | None) -> dict[str, Any]:
    """Return the values of ``--with`` by name; parse the values of parameters that are no texts."""
    return {
        name: value if isinstance(pinned.parameters.get(name), str) else json_or_text(value)
        for name, value in read_pairs("--with", texts).items()
    }
