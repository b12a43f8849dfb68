"""Checks conditions on metadata, and converts them to filters of the engines."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from casewright.errors import InputError
from casewright.stores.engines.engine import Where
from casewright.stores.engines.payload import TAGS, is_number, tag

if TYPE_CHECKING:
    import qdrant_edge
    from qdrant_client import models

RANGE_OPERATORS = ("gte", "gt", "lte", "lt")
Filter = TypeVar("Filter")


def check_where(where: Where | None) -> None:
    """Raise ``InputError`` for an invalid condition."""
    if not isinstance(where or {}, Mapping):
        raise InputError(f"where is {where!r:.200}. Give a mapping of metadata fields to values.")
    for name, value in (where or {}).items():
        if not isinstance(name, str) or not name or '"' in name:
            rule = "A field's name is a text that is not empty and has no double quote."
            raise InputError(f"where has the field {name!r}. {rule}")
        if not (_is_single_or_list(value) or _is_range(value) or _is_negated(value)):
            raise InputError(
                f"where asks for {name} = {value!r}. Give a text, a whole number, a boolean, a "
                'list of texts or of whole numbers, a range such as {"gte": 1, "lt": 5}, or '
                '{"not": …} with any of these except a range.'
            )


def qdrant_filter(where: Where | None) -> models.Filter | None:
    """Return conditions as a filter of Qdrant's client; ``None`` without conditions."""
    from qdrant_client import models

    def make_condition(name: str, value: Any) -> models.FieldCondition:
        # Qdrant reads a key as a path, except for its quoted parts.
        quoted_name = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else f'"{name}"'
        key = f"metadata.{quoted_name}"
        if _is_range(value):
            return models.FieldCondition(key=key, range=models.Range(**value))
        if _is_single(value):
            return models.FieldCondition(key=key, match=models.MatchValue(value=value))
        return models.FieldCondition(key=key, match=models.MatchAny(any=list(value)))

    return _filter(where, make_condition, models.Filter)


def edge_filter(where: Where | None) -> qdrant_edge.Filter | None:
    """Return conditions as a filter for ``edge_payload``'s fields; ``None`` without conditions."""
    import qdrant_edge as edge

    def make_condition(name: str, value: Any) -> Any:
        if _is_range(value):
            range_conditions: list[Any] = [
                edge.FieldCondition(key="field", match=edge.MatchValue(name)),
                edge.FieldCondition(key="value", range=edge.RangeFloat(**value)),
            ]
            return edge.NestedCondition("numbers", edge.Filter(must=range_conditions))
        # A tag is a text that joins a field's name and one value.
        tags = [tag(name, item) for item in ([value] if _is_single(value) else value)]
        return edge.FieldCondition(key=TAGS, match=edge.MatchAny(tags))

    return _filter(where, make_condition, edge.Filter)


def _filter(
    where: Where | None, make_condition: Callable[[str, Any], Any], combine: Callable[..., Filter]
) -> Filter | None:
    """Return an engine's filter (``combine``) of conditions, some of which may be negated."""
    check_where(where)
    if not where:
        return None
    must, must_not = [], []
    for name, value in where.items():
        if isinstance(value, Mapping) and "not" in value:
            must_not.append(make_condition(name, value["not"]))
        else:
            must.append(make_condition(name, value))
    return combine(must=must, must_not=must_not)


def _is_single(value: Any) -> bool:
    return isinstance(value, (str, int))


def _is_range(value: Any) -> bool:
    if not isinstance(value, Mapping) or not value:
        return False
    return set(value) <= set(RANGE_OPERATORS) and all(map(is_number, value.values()))


def _is_negated(value: Any) -> bool:
    return isinstance(value, Mapping) and set(value) == {"not"} and _is_single_or_list(value["not"])


def _is_single_or_list(value: Any) -> bool:
    if isinstance(value, (list, tuple, set, frozenset)):
        is_all_text = all(isinstance(item, str) for item in value)
        return is_all_text or all(type(item) is int for item in value)
    return _is_single(value)
