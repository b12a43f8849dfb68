"""A case store as a LlamaIndex retriever, for query engines.

``casewright.stores`` does not import this module, so that it starts without LlamaIndex::

    from casewright.stores.retrievers.llamaindex import CaseNodeRetriever
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Literal

from casewright.errors import DependencyError, InputError
from casewright.stores.retrievers.llamaindex_filters import where_of
from casewright.stores.retrievers.retrieval import (
    CaseText,
    Retrieval,
    SearchedStore,
    case_text,
    hit_metadata,
    retrieve,
)

try:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.callbacks import CallbackManager
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
    from llama_index.core.vector_stores import MetadataFilters
except ImportError as error:
    raise DependencyError(
        "A LlamaIndex retriever needs llama-index-core. Run: pip install llama-index-core"
    ) from error


class CaseNodeRetriever(BaseRetriever):
    """Retrieves the cases of a store as nodes with scores.

    A node has the case's text, its id, and its metadata with ``score``, ``relevance``,
    ``facet_scores`` and ``case_id`` added; where the case has a field of such a name, its own
    stays, and the added one goes by ``hit_`` and the name. What is added is not shown to a model.

    A query is searched by its text: where LlamaIndex made several texts of it (``HyDE``, for
    example), by all of them, joined by new lines. Its embedding is not used, since a store embeds a
    query once for each facet.

    Args:
        store: What is searched.
        k: How many nodes, at least 1; fewer come back where the store holds fewer.
        weights: Facet name to weight; ``None`` uses the facets' own.
        lambda_b: Share of the relevance in the score; see ``CaseStore.search``.
        where: Metadata that a case must have, as ``CaseStore.search`` takes it.
        filters: The same as LlamaIndex's filters; they hold beside ``where``.
        search_type: ``"similarity"`` or ``"mmr"``, RAGSys's selection.
        lambda_d: For ``"mmr"``: share of the score, from 0 (nothing but diversity) to 1.
        text: A case as text: the schema's ``"support"`` or ``"full"``, or a function.
        callback_manager: LlamaIndex's, for tracing.

    Raises:
        InputError: A setting that no search could use, or a filter that a store does not have.
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
        asked = {} if filters is None else where_of(filters)
        if twice := sorted(set(conditions) & set(asked)):
            raise InputError(f"where and filters both ask for {twice}. Ask by one of them.")
        self._store = store
        self._asked = Retrieval(
            k=k,
            weights=weights,
            lambda_b=lambda_b,
            where=conditions | asked,
            search_type=search_type,
            lambda_d=lambda_d,
            text=text,
        )
        store.schema.weights(weights)
        super().__init__(callback_manager=callback_manager)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        query = "\n".join(query_bundle.embedding_strs)
        nodes = []
        for hit in retrieve(self._store, query, self._asked):
            metadata, added = hit_metadata(hit)
            node = TextNode(
                id_=hit.case.id,
                text=case_text(hit.case, self._store.schema, self._asked.text),
                metadata=metadata,
                excluded_llm_metadata_keys=added,
                excluded_embed_metadata_keys=added,
            )
            nodes.append(NodeWithScore(node=node, score=hit.score))
        return nodes

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)
