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

    A document has the text that the judge was shown, uncut, its id and its metadata with ``score``,
    ``relevance``, ``facet_scores``, ``case_id``, ``round``, ``confirmed`` (the judge called it
    relevant), ``probability`` and ``stopped`` (why the loop ended) added. Where the case has a
    field of such a name, its own stays, and the added one goes by ``hit_`` and the name.

    Attributes:
        search: What is searched, who judges, and within which limits.
        k: Most documents.
        where: Metadata that a case must have, as ``CaseStore.search`` takes it.

    Raises (when invoked):
        InputError: The question or the condition cannot be used.
        StoreError: The store is closed, or cannot answer.
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    search: FeedbackSearch
    k: Annotated[int, Field(ge=1, strict=True)] = 8
    where: Mapping[str, Any] | None = None

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        config: Any = {"callbacks": run_manager.get_child()}
        return self._documents(query, self.search.loop.invoke(self._given(query), config))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        config: Any = {"callbacks": run_manager.get_child()}
        state = await self.search.loop.ainvoke(self._given(query), config)
        return await run_in_executor(None, self._documents, query, state)

    def _given(self, query: str) -> FeedbackInput:
        return {"question": query, "where": None if self.where is None else dict(self.where)}

    def _documents(self, query: str, state: Mapping[str, Any]) -> list[Document]:
        result = FeedbackResult.from_state(state)
        known = {one["id"]: one for one in result.candidates}
        return [
            Document(
                id=hit.case.id,
                page_content=self.search.text(hit.case),
                metadata=hit_metadata(hit, _told(known[hit.case.id], result))[0],
            )
            for hit in self.search.hits(result, query, self.k, self.where)
        ]


def _told(candidate: Mapping[str, Any], result: FeedbackResult) -> dict[str, Any]:
    return {
        "round": candidate["round"],
        "confirmed": bool(candidate["relevant"]),
        "probability": candidate["probability"],
        "stopped": result.reason,
    }
