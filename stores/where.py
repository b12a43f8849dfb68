"""Metadata conditions: what a search may ask for, and how the engines are asked for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from casewright.errors import InputError
from casewright.stores.engines.edge_payload import is_number, tag
from casewright.stores.engines.engine import Where

if TYPE_CHECKING:
    import qdrant_edge
    from qdrant_client import models

RANGE = ("gte", "gt", "lte", "lt")


def check_where(where: Where | None) -> None:
    """Raise ``InputError`` for a condition that no engine could answer."""
    if not isinstance(where or {}, Mapping):
        raise InputError(f"where is {where!r:.200}. Give a mapping of metadata fields to values.")
    for name, value in (where or {}).items():
        if not isinstance(name, str) or not name or '"' in name:
            raise InputError(
                f"where has the field {name!r}. A field is named by a text that is not empty and "
                "has no double quote."
            )
        if not (_allowed(value) or _is_range(value) or _is_not(value)):
            raise InputError(
                f"where asks for {name} = {value!r}. Give a text, a whole number, a boolean, a "
                'list of texts or of whole numbers, a range such as {"gte": 1, "lt": 5}, or '
                '{"not": …} with one of the first four.'
            )


def qdrant_filter(where: Where | None) -> models.Filter | None:
    """Return the conditions as a Qdrant filter; ``None`` where there are none."""
    from qdrant_client import models

    check_where(where)
    if not where:
        return None
    must: list[Any] = []
    must_not: list[Any] = []
    for name, value in where.items():
        # A key is a path to Qdrant, in which a quoted part is taken as it is.
        part = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else f'"{name}"'
        key = f"metadata.{part}"
        if _is_range(value):
            must.append(models.FieldCondition(key=key, range=models.Range(**value)))  # type: ignore[arg-type]
            continue
        asked, into = _wanted(value, must, must_not)
        match: Any
        if isinstance(asked, (str, int)):
            match = models.MatchValue(value=asked)
        else:
            match = models.MatchAny(any=list(asked))
        into.append(models.FieldCondition(key=key, match=match))
    return models.Filter(must=must, must_not=must_not)


def edge_filter(where: Where | None) -> qdrant_edge.Filter | None:
    """Return the conditions as a filter of Edge over what it keeps; ``None`` where there are none.

    See ``edge_payload.payload``.
    """
    from qdrant_edge import (
        FieldCondition,
        Filter,
        MatchAny,
        MatchValue,
        NestedCondition,
        RangeFloat,
    )

    check_where(where)
    if not where:
        return None
    must: list[Any] = []
    must_not: list[Any] = []
    for name, value in where.items():
        if _is_range(value):
            inside: list[Any] = [
                FieldCondition(key="field", match=MatchValue(name)),
                FieldCondition(key="value", range=RangeFloat(**value)),  # type: ignore[arg-type]
            ]
            must.append(NestedCondition("numbers", Filter(must=inside)))
            continue
        asked, into = _wanted(value, must, must_not)
        items = [asked] if isinstance(asked, (str, int)) else asked
        into.append(FieldCondition(key="tags", match=MatchAny([tag(name, i) for i in items])))
    return Filter(must=must, must_not=must_not)


def _wanted(value: Any, must: list[Any], must_not: list[Any]) -> tuple[Any, list[Any]]:
    """Return the value or values that are asked for, and the list that the condition goes to."""
    return (value["not"], must_not) if _is_not(value) else (value, must)


def _is_range(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and bool(value)
        and set(value) <= set(RANGE)
        and all(is_number(bound) for bound in value.values())
    )


def _is_not(value: Any) -> bool:
    return isinstance(value, Mapping) and set(value) == {"not"} and _allowed(value["not"])


def _allowed(value: Any) -> bool:
    if isinstance(value, (list, tuple, set, frozenset)):
        texts = all(isinstance(item, str) for item in value)
        return texts or all(type(item) is int for item in value)
    return isinstance(value, (str, int))
