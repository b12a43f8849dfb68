"""The terminals of the context: its fields, by the kind of their values."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from casewright.planner.grammar.bounds import CONTEXT_FIELDS, CONTEXT_NAME
from casewright.planner.grammar.terminals import CONTEXT
from casewright.tools import Parameter
from casewright.tools.alias import NAME

_KINDS = {name: Parameter("value", kind=kind) for kind, name in CONTEXT.items()}


def context_terminals(context: Mapping[str, Any]) -> dict[str, str]:
    """Return the definitions by the terminals' names; a kind that no field has is left out.

    Fields that are null or whose names are no identifiers cannot be referred to. The first
    ``CONTEXT_FIELDS`` of the others can, where their names have at most ``CONTEXT_NAME``
    characters.
    """
    named = (
        (field, value)
        for field, value in context.items()
        if value is not None and len(field) <= CONTEXT_NAME and NAME.fullmatch(field)
    )
    fields = list(islice(named, CONTEXT_FIELDS))
    found = {}
    for terminal, kind in _KINDS.items():
        fitting = [f'"{field}"' for field, value in fields if kind.fits(value)]
        if fitting:
            found[terminal] = f'{terminal}:"context."({"|".join(fitting)})'
    return found
