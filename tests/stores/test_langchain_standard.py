from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests

from casewright.stores import CaseStore
from casewright.stores.retrievers.langchain import CaseRetriever
from tests.stores.helpers import note, note_schema

# The suite expects asyncio_mode = "auto"; it forbids overriding its tests, so marks are added.
pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.filterwarnings("ignore:.*marked with '@pytest.mark.asyncio'"),
]


@pytest.mark.parametrize("search_type", ["similarity", "mmr"])
class TestCaseRetriever(RetrieversIntegrationTests):
    """LangChain's standard tests of a retriever."""

    @pytest.fixture(autouse=True)
    def filled_store(self, search_type: str) -> Iterator[None]:
        with CaseStore(note_schema()) as store:
            store.add(
                [note(f"how to mend the {machine}", machine) for machine in ("mill", "oven", "saw")]
            )
            store.add([note("where is the saw", "hall B")])
            self._params = {"store": store, "search_type": search_type}
            yield

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return CaseRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return self._params

    @property
    def retriever_query_example(self) -> str:
        return "how do I mend the saw?"
