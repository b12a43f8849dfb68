"""LlamaIndex's metadata filters become conditions of a store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from casewright.errors import InputError
from casewright.stores.where import check_where

if TYPE_CHECKING:
    from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

RANGES = {">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}
#: Operators that ask for one value; a list in the metadata has it where an element is that value.
ONE = ("==", "contains", "!=")
#: Operators that ask for one of several values.
SEVERAL = ("in", "any", "nin")
NEGATED = ("!=", "nin")


def where_of(filters: MetadataFilters) -> dict[str, Any]:
    """Return LlamaIndex's filters as conditions, all of which must hold.

    Raises:
        InputError: An operator that a store does not have (``all``, ``text_match``,
            ``text_match_insensitive``, ``is_empty``), filters joined by ``or`` or ``not``, or two
            conditions for one field that are not bounds of one range.
    """
    where: dict[str, Any] = {}
    for one in _flat(filters):
        condition = _condition(one)
        known = where.get(one.key)
        if known is None:
            where[one.key] = condition
        elif _is_bound(known) and _is_bound(condition) and not set(known) & set(condition):
            where[one.key] = known | condition
        else:
            raise InputError(
                f"The filters ask twice for {one.key!r}: {known!r} and {condition!r}. A store "
                "takes one condition a field; filter what it returns by the other."
            )
    check_where(where)
    return where


def _flat(filters: MetadataFilters) -> Iterator[MetadataFilter]:
    from llama_index.core.vector_stores import MetadataFilters

    joined = filters.condition.value if filters.condition else "and"
    # One filter alone is not joined to anything, but it may be negated.
    if joined == "not" or (joined == "or" and len(filters.filters) > 1):
        raise InputError(
            f"The filters are joined by {joined!r}. A store takes filters that all hold ('and'); "
            "a field that may have one of several values is asked for by the operator 'in'."
        )
    for one in filters.filters:
        if isinstance(one, MetadataFilters):
            yield from _flat(one)
        else:
            yield one


def _condition(one: MetadataFilter) -> Any:
    operator = one.operator.value
    if operator in RANGES:
        return {RANGES[operator]: one.value}
    if operator not in (*ONE, *SEVERAL):
        raise InputError(
            f"The filter of {one.key!r} has the operator {operator!r}, which a store does not "
            f"have. It has {', '.join((*ONE, *SEVERAL, *RANGES))}."
        )
    if isinstance(one.value, list) != (operator in SEVERAL):
        raise InputError(
            f"The filter of {one.key!r} asks {operator!r} {one.value!r}. "
            f"{'Give a list of values' if operator in SEVERAL else 'Give one value, no list'}."
        )
    return {"not": one.value} if operator in NEGATED else one.value


def _is_bound(condition: Any) -> bool:
    return isinstance(condition, dict) and "not" not in condition
