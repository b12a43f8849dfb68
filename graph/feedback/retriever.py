"""The feedback loop as a LangChain retriever, for chains, agents and tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import run_in_executor
from pydantic import ConfigDict, Field

from casewright.graph.feedback.search import FeedbackSearch
from casewright.graph.feedback.state import FeedbackInput, FeedbackResult
from casewright.stores.retrievers.retrieval import hit_metadata


class FeedbackRetriever(BaseRetriever):
    """Retrieves cases as documents, by relevance feedback::

        FeedbackRetriever(search=FeedbackSearch(store, judge), k=8).invoke("…")

    A document has the case's whole text, id and metadata. The metadata also has
    ``score``, ``relevance``, ``facet_scores``, ``case_id``, ``round``, ``confirmed`` (True if the
    judge marked the case as relevant), ``probability`` and ``stopped`` (the reason why the loop
    ended). If the case has a field with one of these names, the added field is named ``hit_…``.

    Attributes:
        search: The search with its store, judge and limits.
        k: Maximum number of documents.
        where: Metadata that a case must have, as for ``CaseStore.search``.

    Raises (when invoked):
        InputError: The question or ``where`` is invalid.
        StoreError: The store is closed, or the search fails.
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    search: FeedbackSearch
    k: Annotated[int, Field(ge=1, strict=True)] = 8
    where: Mapping[str, Any] | None = None

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        config: Any = {"callbacks": run_manager.get_child()}
        return self._documents(query, self.search.loop.invoke(self._inputs(query), config))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        config: Any = {"callbacks": run_manager.get_child()}
        state = await self.search.loop.ainvoke(self._inputs(query), config)
        return await run_in_executor(None, self._documents, query, state)

    def _inputs(self, query: str) -> FeedbackInput:
        return {"question": query, "where": None if self.where is None else dict(self.where)}

    def _documents(self, query: str, state: Mapping[str, Any]) -> list[Document]:
        result = FeedbackResult.from_state(state)
        candidates = {candidate["id"]: candidate for candidate in result.candidates}
        documents = []
        for hit in self.search.hits(result, query, self.k, self.where):
            candidate = candidates[hit.case.id]
            feedback_fields = {
                "round": candidate["round"],
                "confirmed": bool(candidate["relevant"]),
                "probability": candidate["probability"],
                "stopped": result.reason,
            }
            metadata, _ = hit_metadata(hit, feedback_fields)
            text = self.search.text(hit.case)
            documents.append(Document(id=hit.case.id, page_content=text, metadata=metadata))
        return documents
