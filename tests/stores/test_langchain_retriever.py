from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_core.tools import create_retriever_tool

from casewright.errors import InputError, StoreError
from casewright.stores import Case, CaseStore
from casewright.stores.retrievers.langchain import CaseRetriever
from casewright.stores.retrievers.retrieval import CaseText
from tests.stores.helpers import note, note_schema
from tests.support.encoders import HashingEncoder

THINGS = ("mill", "oven", "saw", "lathe", "press")


@pytest.fixture
def filled_store() -> Iterator[CaseStore]:
    with CaseStore(note_schema()) as store:
        store.add(
            note(f"how to mend the {machine}", f"see page {i}", metadata={"year": 2020 + i})
            for i, machine in enumerate(THINGS)
        )
        yield store


def contents(documents: list[Document]) -> list[str]:
    return [document.page_content for document in documents]


def test_document_has_text_id_metadata_and_scores_of_the_case(filled_store: CaseStore) -> None:
    (document,) = CaseRetriever(store=filled_store, k=1).invoke("how to mend the saw")
    (hit,) = filled_store.search("how to mend the saw", 1)
    assert (document.page_content, document.id) == ("see page 2", hit.case.id)
    assert document.metadata == {
        "year": 2022,
        "score": hit.score,
        "relevance": hit.relevance,
        "facet_scores": dict(hit.facet_scores),
        "case_id": hit.case.id,
    }


def test_added_metadata_does_not_overwrite_metadata_of_the_case() -> None:
    fields = {"score": 3, "case_id": "A-7", "hit_case_id": "B-9"}
    with CaseStore(note_schema()) as store:
        (case_id,) = store.add([note("a saw", 1, metadata=fields)])
        (document,) = CaseRetriever(store=store).invoke("a saw")
    assert {name: document.metadata[name] for name in fields} == fields
    assert document.metadata["hit_score"] == pytest.approx(document.metadata["relevance"])
    assert document.metadata["hit_hit_case_id"] == case_id


def test_documents_are_in_search_order_for_every_setting(filled_store: CaseStore) -> None:
    custom: dict[str, Any] = {"weights": {"question": 1}, "lambda_b": 0.5, "where": {"year": 2021}}
    for settings in ({}, custom, {"where": {"year": {"gte": 2021, "lt": 2023}}}):
        documents = CaseRetriever(store=filled_store, k=3, **settings).invoke("mend the oven")
        hits = filled_store.search("mend the oven", 3, **settings)
        assert [document.id for document in documents] == [hit.case.id for hit in hits]
        assert [d.metadata["score"] for d in documents] == [hit.score for hit in hits]


def test_settings_of_a_call_override_retriever_settings_for_that_call_only(
    filled_store: CaseStore,
) -> None:
    retriever = CaseRetriever(store=filled_store, k=1, where={"year": 2020})
    overrides: dict[str, Any] = {"k": 3, "where": {"year": [2022, 2023]}, "text": "full"}
    full = retriever.invoke("how to mend the saw", **overrides)
    assert [document.metadata["year"] for document in full] == [2022, 2023]
    assert contents(full)[0] == "question: how to mend the saw\nsolution: see page 2"
    assert asyncio.run(retriever.ainvoke("how to mend the saw", **overrides)) == full
    assert contents(retriever.invoke("how to mend the saw")) == ["see page 0"]


def test_search_type_mmr_returns_the_selection_of_the_store(filled_store: CaseStore) -> None:
    filled_store.add([note("how to mend the saw !", f"copy {i}") for i in range(4)])
    retriever = CaseRetriever(store=filled_store, k=4, search_type="mmr", lambda_d=0.3)
    diverse = retriever.invoke("how to mend the saw")
    picks = filled_store.select("how to mend the saw", 4, lambda_d=0.3).picks
    assert [document.id for document in diverse] == [pick.hit.case.id for pick in picks]
    assert diverse != retriever.invoke("how to mend the saw", search_type="similarity")
    assert diverse != retriever.invoke("how to mend the saw", lambda_d=1.0)


def test_document_text_is_support_full_text_or_function_result() -> None:
    case = Case({"question": "why", "support": "s"}, "because", result="ok")
    with CaseStore(note_schema(support=lambda case: f"<{case.solution}>")) as store:
        store.add([case])
        texts: tuple[CaseText, ...] = (
            "support",
            "full",
            lambda case: str(case.problem["support"]).upper(),
        )
        results = [
            contents(CaseRetriever(store=store, text=text).invoke("why"))[0] for text in texts
        ]
    assert results == ["<because>", "question: why\nsupport: s\nsolution: because\nresult: ok", "S"]


def test_text_function_that_does_not_return_a_str_is_refused(filled_store: CaseStore) -> None:
    retriever = CaseRetriever(store=filled_store, text=lambda case: case.solution.encode())
    with pytest.raises(InputError, match="must return a str"):
        retriever.invoke("saw")


INVALID_SETTINGS = [
    ({"k": 0}, "k=0: Input should be greater than or equal to 1"),
    ({"k": -3}, "k=-3"),
    ({"k": "3"}, "k='3': Input should be a valid integer"),
    ({"k": 2.5}, "k=2.5"),
    ({"k": True}, "k=True"),
    ({"lambda_b": 2.5}, "lambda_b=2.5"),
    ({"lambda_d": float("nan")}, "lambda_d=nan"),
    ({"search_type": "best"}, "search_type='best'.*'similarity' or 'mmr'"),
    ({"where": "year"}, "where='year'"),
    ({"where": {"year": 2.5}}, "year = 2.5"),
    ({"weights": {"colour": 1}}, "no facet"),
    ({"weights": {"question": -1}}, "at least 0"),
    ({"text": "short"}, "text='short'"),
    ({"filter": {"year": 2020}}, "filter="),
]


@pytest.mark.parametrize(("settings", "message"), INVALID_SETTINGS, ids=str)
def test_invalid_setting_is_refused_in_constructor_and_call(
    filled_store: CaseStore, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        CaseRetriever(store=filled_store, **settings)
    with pytest.raises(InputError, match=message):
        CaseRetriever(store=filled_store).invoke("saw", **settings)


def test_retriever_without_a_store_is_refused() -> None:
    with pytest.raises(InputError, match="store: Field required"):
        CaseRetriever(k=3)  # type: ignore[call-arg]
    with pytest.raises(InputError, match="store='cases': Input should be an instance of Searched"):
        CaseRetriever(store="cases")  # type: ignore[arg-type]


@pytest.mark.parametrize("query", [None, 3, {"question": "saw"}], ids=str)
def test_query_that_is_not_a_text_is_refused(filled_store: CaseStore, query: Any) -> None:
    with pytest.raises(InputError, match="Give a text"):
        CaseRetriever(store=filled_store).invoke(query)


def test_retriever_of_a_tenant_finds_no_case_of_another_tenant(location: str) -> None:
    with CaseStore(note_schema(), location) as store:
        acme, zeta = store.for_tenant("acme"), store.for_tenant("zeta")
        acme.add([note("how to mend the saw", "acme's way")])
        zeta.add([note("how to mend the saw", "zeta's way")])
        with acme, zeta:
            retriever = CaseRetriever(store=acme)
            (document,) = retriever.invoke("how to mend the saw")
            assert (document.page_content, document.metadata["tenant"]) == ("acme's way", "acme")
            assert contents(retriever.invoke("saw", search_type="mmr")) == ["acme's way"]
            with pytest.raises(InputError, match="'zeta'"):
                retriever.invoke("saw", where={"tenant": "zeta"})


@pytest.mark.parametrize("search_type", ["similarity", "mmr"])
def test_retriever_returns_no_document_from_empty_store_and_all_from_small_store(
    location: str, search_type: Any
) -> None:
    with CaseStore(note_schema(), location) as store:
        retriever = CaseRetriever(store=store, k=50, search_type=search_type)
        assert retriever.invoke("anything") == []
        store.add([note(f"question {i}", str(i)) for i in range(3)])
        assert sorted(contents(retriever.invoke("anything"))) == ["0", "1", "2"]


def test_retriever_with_a_closed_store_raises_store_error(filled_store: CaseStore) -> None:
    retriever = CaseRetriever(store=filled_store)
    filled_store.close()
    with pytest.raises(StoreError, match="closed"):
        retriever.invoke("saw")
    with pytest.raises(StoreError, match="closed"):
        asyncio.run(retriever.ainvoke("saw"))


def test_concurrent_calls_each_get_the_answer_to_their_query(location: str) -> None:
    with CaseStore(note_schema("wide", HashingEncoder(512)), location) as store:
        store.add([note(f"question number {i}", str(i)) for i in range(40)])
        retriever = CaseRetriever(store=store, k=3)
        queries = [f"question number {i}" for i in range(12)]

        async def retrieve_all() -> list[list[Document]]:
            return await asyncio.gather(*(retriever.ainvoke(query) for query in queries))

        answers = asyncio.run(retrieve_all())
        assert answers == retriever.batch(queries)
    assert [contents(documents)[0] for documents in answers] == [str(i) for i in range(12)]


def test_event_loop_runs_while_a_store_is_searched(filled_store: CaseStore) -> None:
    loop_calls: list[str] = []

    def waiting_text(case: Case) -> str:
        # Runs in the search's thread, and only ends if the event loop runs meanwhile.
        asyncio.run_coroutine_threadsafe(record_call(), loop).result(timeout=20)
        return str(case.solution)

    async def record_call() -> None:
        loop_calls.append("called")

    async def retrieve() -> list[Document]:
        return await CaseRetriever(store=filled_store, k=2, text=waiting_text).ainvoke("saw")

    loop = asyncio.new_event_loop()
    try:
        assert len(loop.run_until_complete(retrieve())) == 2
    finally:
        loop.close()
    assert loop_calls == ["called", "called"]


@pytest.mark.parametrize("search_type", ["similarity", "mmr"])
def test_retriever_tool_of_langchain_returns_the_documents_of_the_store(
    filled_store: CaseStore, search_type: Any
) -> None:
    retriever = CaseRetriever(store=filled_store, k=2, search_type=search_type)
    tool = create_retriever_tool(
        retriever, "manual", "Searches the manual.", response_format="content_and_artifact"
    )
    call = {"type": "tool_call", "name": "manual", "args": {"query": "mend the saw"}, "id": "1"}
    message = tool.invoke(call)
    documents = retriever.invoke("mend the saw")
    assert message.content == "\n\n".join(contents(documents))
    assert message.artifact == documents
    assert asyncio.run(tool.ainvoke(call)).content == message.content
    plain = create_retriever_tool(retriever, "manual", "Searches the manual.")
    assert plain.invoke({"query": "mend the saw"}) == message.content


def test_retriever_works_in_a_chain_with_configurable_k(filled_store: CaseStore) -> None:
    chain = CaseRetriever(store=filled_store, k=1).configurable_fields(
        k=ConfigurableField(id="k")
    ) | RunnableLambda(contents)
    assert chain.invoke("how to mend the oven") == ["see page 1"]
    assert len(chain.invoke("oven", config={"configurable": {"k": 4}})) == 4


def test_importing_stores_imports_neither_langchain_nor_llamaindex() -> None:
    code = (
        "import sys, casewright.stores; print({'langchain_core', 'llama_index'} & set(sys.modules))"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (process.returncode, process.stdout) == (0, "set()\n")
