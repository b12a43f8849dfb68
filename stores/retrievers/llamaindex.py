"""A case store as a LlamaIndex retriever, for query engines.

``casewright.stores`` works without LlamaIndex, since it does not import this module.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from casewright.errors import DependencyError, InputError
from casewright.stores.retrievers import retrieval
from casewright.stores.retrievers.retrieval import CaseText, Retrieval, SearchedStore
from casewright.stores.where import check_where

try:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.callbacks import CallbackManager
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
    from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
except ImportError as error:
    problem = "A LlamaIndex retriever needs llama-index-core."
    raise DependencyError(f"{problem} Run: pip install llama-index-core") from error

#: LlamaIndex's operators for the bounds of a range, and the store's names for them.
RANGE_BOUNDS = {">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}
#: Operators with one value. If the metadata have a list, one matching element is enough.
ONE_VALUE = ("==", "contains", "!=")
#: Operators with several values.
MANY_VALUES = ("in", "any", "nin")
NEGATED = ("!=", "nin")


class CaseNodeRetriever(BaseRetriever):
    """A retriever that returns a store's cases as nodes with scores.

    A node has the case's text and id, and the metadata that LangChain's ``CaseRetriever`` gives
    its documents. Fields that the retriever adds are left out of prompts and embeddings.

    A search uses the query's text; several texts, for example of ``HyDE``, are joined by line
    breaks. The query's embedding is not used, since a store embeds a query once for each facet.
    Keyword arguments that are not described here are settings of ``Retrieval``.

    Args:
        filters: LlamaIndex's filters, in addition to ``where``.
        callback_manager: LlamaIndex's callback manager, for tracing.

    Raises:
        InputError: A setting is invalid, or a store does not support a filter.
    """

    def __init__(
        self,
        store: SearchedStore,
        *,
        k: int = 4,
        weights: Mapping[str, float] | None = None,
        lambda_b: float = 1.0,
        where: Mapping[str, Any] | None = None,
        filters: MetadataFilters | None = None,
        search_type: Literal["similarity", "mmr"] = "similarity",
        lambda_d: float = 0.75,
        text: CaseText = "support",
        callback_manager: CallbackManager | None = None,
    ) -> None:
        conditions = dict(where or {})
        filter_conditions = {} if filters is None else where_of(filters)
        if shared_fields := sorted(set(conditions) & set(filter_conditions)):
            problem = f"where and filters both have a condition on {shared_fields}"
            raise InputError(f"{problem}. Give one of the two.")
        self._store = store
        self._retrieval = Retrieval(
            k=k,
            weights=weights,
            lambda_b=lambda_b,
            where=conditions | filter_conditions,
            search_type=search_type,
            lambda_d=lambda_d,
            text=text,
        )
        store.schema.weights(weights)
        super().__init__(callback_manager=callback_manager)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        query = "\n".join(query_bundle.embedding_strs)
        nodes = []
        for hit in retrieval.retrieve(self._store, query, self._retrieval):
            text = retrieval.case_text(hit.case, self._store.schema, self._retrieval.text)
            metadata, added_names = retrieval.hit_metadata(hit)
            node = TextNode(id_=hit.case.id, text=text, metadata=metadata)
            node.excluded_llm_metadata_keys = node.excluded_embed_metadata_keys = added_names
            nodes.append(NodeWithScore(node=node, score=hit.score))
        return nodes

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


def where_of(filters: MetadataFilters) -> dict[str, Any]:
    """Return LlamaIndex's filters as conditions, all of which must hold.

    Raise ``InputError`` for an operator that a store does not support (``all``, ``text_match``,
    ``text_match_insensitive``, ``is_empty``), for filters joined by ``or`` or ``not``, and for two
    conditions on one field, unless they are the two bounds of a range.
    """
    where: dict[str, Any] = {}
    for item in _flat_filters(filters):
        condition = _condition(item)
        if (earlier := where.get(item.key)) is None:
            where[item.key] = condition
        elif _is_range(earlier) and _is_range(condition) and not set(earlier) & set(condition):
            where[item.key] = earlier | condition
        else:
            problem = f"The filters ask twice for {item.key!r}: {earlier!r} and {condition!r}."
            advice = "A store takes one condition per field; filter what it returns by the other."
            raise InputError(f"{problem} {advice}")
    check_where(where)
    return where


def _flat_filters(filters: MetadataFilters) -> Iterator[MetadataFilter]:
    operator = filters.condition.value if filters.condition else "and"
    # A single filter may be joined by "or", but not negated.
    if operator == "not" or (operator == "or" and len(filters.filters) > 1):
        raise InputError(
            f"The filters are joined by {operator!r}. A store takes filters that all hold ('and'); "
            "a field that may have one of several values is asked for by the operator 'in'."
        )
    for metadata_filter in filters.filters:
        if isinstance(metadata_filter, MetadataFilters):
            yield from _flat_filters(metadata_filter)
        else:
            yield metadata_filter


def _condition(item: MetadataFilter) -> Any:
    operator = item.operator.value
    if operator in RANGE_BOUNDS:
        return {RANGE_BOUNDS[operator]: item.value}
    if operator not in (*ONE_VALUE, *MANY_VALUES):
        raise InputError(
            f"The filter of {item.key!r} has the operator {operator!r}, which a store does not "
            f"have. It has {', '.join((*ONE_VALUE, *MANY_VALUES, *RANGE_BOUNDS))}."
        )
    if isinstance(item.value, list) != (operator in MANY_VALUES):
        advice = "Give a list of values." if operator in MANY_VALUES else "Give one value, no list."
        raise InputError(f"The filter of {item.key!r} asks {operator!r} {item.value!r}. {advice}")
    return {"not": item.value} if operator in NEGATED else item.value


def _is_range(condition: Any) -> bool:
    return isinstance(condition, dict) and "not" not in condition
