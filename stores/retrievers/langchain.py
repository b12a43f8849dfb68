"""A case store as a LangChain retriever, for chains, agents and tools.

``casewright.stores`` works without LangChain, since it does not import this module.
"""

from __future__ import annotations

from typing import Any, Self

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import run_in_executor
from pydantic import ConfigDict, model_validator

from casewright.stores.retrievers import retrieval
from casewright.stores.retrievers.retrieval import Retrieval, SearchedStore


class CaseRetriever(Retrieval, BaseRetriever):
    """A retriever that returns a store's cases as documents; ``Retrieval`` has the settings.

    A document has the text, the id and the metadata of a case. The fields ``score``, ``relevance``,
    ``facet_scores`` and ``case_id`` are added to the metadata; a field whose name is taken has the
    prefix ``hit_``. A call may override every setting except the store:
    ``retriever.invoke("…", k=2, where={"year": 2024})``.

    Raises:
        InputError: A setting is unknown or invalid.
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    store: SearchedStore

    @model_validator(mode="after")
    def _check_weights(self) -> Self:
        self.store.schema.weights(self.weights)
        return self

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **settings: Any
    ) -> list[Document]:
        return self._documents(query, settings)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **settings: Any
    ) -> list[Document]:
        return await run_in_executor(None, self._documents, query, settings)

    def _documents(self, query: str, settings: dict[str, Any]) -> list[Document]:
        defaults = {name: getattr(self, name) for name in Retrieval.model_fields}
        # LangChain itself passes ``verbose``, which is not a setting.
        settings = {name: value for name, value in settings.items() if name != "verbose"}
        search = Retrieval(**defaults | settings)
        documents = []
        for hit in retrieval.retrieve(self.store, query, search):
            text = retrieval.case_text(hit.case, self.store.schema, search.text)
            metadata, _ = retrieval.hit_metadata(hit)
            documents.append(Document(id=hit.case.id, page_content=text, metadata=metadata))
        return documents
