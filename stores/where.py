"""Metadata conditions: what a search may ask for, and how the engines are asked for it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from casewright.errors import InputError
from casewright.stores.engine import Where

if TYPE_CHECKING:
    import qdrant_edge
    from qdrant_client import models


def check_where(where: Where | None) -> None:
    """Raise ``InputError`` for a condition that no engine could answer."""
    for name, value in (where or {}).items():
        if not isinstance(name, str) or not name or '"' in name:
            raise InputError(
                f"where has the field {name!r}. A field is named by a text that is not empty and "
                "has no double quote."
            )
        if not _allowed(value):
            raise InputError(
                f"where asks for {name} = {value!r}. Give a text, a whole number, a boolean, or a "
                "list of texts or of whole numbers."
            )


def qdrant_filter(where: Where | None) -> models.Filter | None:
    """Return the conditions as a Qdrant filter; ``None`` where there are none."""
    from qdrant_client import models

    check_where(where)
    if not where:
        return None
    conditions: list[models.Condition] = []
    for name, value in where.items():
        match: Any
        if isinstance(value, (str, int)):
            match = models.MatchValue(value=value)
        else:
            match = models.MatchAny(any=list(value))  # type: ignore[arg-type]
        # A key is a path to Qdrant, in which a quoted part is taken as it is.
        part = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else f'"{name}"'
        conditions.append(models.FieldCondition(key=f"metadata.{part}", match=match))
    return models.Filter(must=conditions)


def edge_filter(where: Where | None) -> qdrant_edge.Filter | None:
    """Return the conditions as a filter of Edge over ``tags``; ``None`` where there are none."""
    from qdrant_edge import FieldCondition, Filter, MatchAny

    check_where(where)
    if not where:
        return None
    must: list[Any] = []
    for name, value in where.items():
        single = isinstance(value, (str, int))
        asked = [_tag(name, item) for item in ([value] if single else value)]  # type: ignore[union-attr]
        must.append(FieldCondition(key="tags", match=MatchAny(asked)))
    return Filter(must=must)


def tags(payload: Mapping[str, Any]) -> list[str]:
    """Return what conditions may ask for of a case: a text for each value of its metadata.

    As texts, whole numbers of any size are told apart, ``True`` is not 1, and a field's name is
    no path.
    """
    found = []
    for name, value in (payload.get("metadata") or {}).items():
        items = value if isinstance(value, list) else [value]
        found += [_tag(name, item) for item in items if isinstance(item, (str, int))]
    return found


def _tag(name: str, value: Any) -> str:
    return json.dumps([name, value])


def _allowed(value: Any) -> bool:
    if isinstance(value, (list, tuple, set, frozenset)):
        texts = all(isinstance(item, str) for item in value)
        return texts or all(type(item) is int for item in value)
    return isinstance(value, (str, int))
