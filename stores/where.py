"""Metadata conditions: what a search may ask for, and how Qdrant is asked for it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from casewright.errors import InputError
from casewright.stores.engine import Where

if TYPE_CHECKING:
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


def _allowed(value: Any) -> bool:
    if isinstance(value, (list, tuple, set, frozenset)):
        texts = all(isinstance(item, str) for item in value)
        return texts or all(type(item) is int for item in value)
    return isinstance(value, (str, int))
