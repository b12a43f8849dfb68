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
def mended() -> Iterator[CaseStore]:
    with CaseStore(note_schema()) as store:
        store.add(
            note(f"how to mend the {thing}", f"see page {i}", metadata={"year": 2020 + i})
            for i, thing in enumerate(THINGS)
        )
        yield store


def pages(documents: list[Document]) -> list[str]:
    return [document.page_content for document in documents]


def test_document_has_text_id_metadata_and_scores_of_the_case(
    mended: CaseStore,
) -> None:
    (document,) = CaseRetriever(store=mended, k=1).invoke("how to mend the saw")
    (hit,) = mended.search("how to mend the saw", 1)
    assert (document.page_content, document.id) == ("see page 2", hit.case.id)
    assert document.metadata == {
        "year": 2022,
        "score": hit.score,
        "relevance": hit.relevance,
        "facet_scores": dict(hit.facet_scores),
        "case_id": hit.case.id,
    }


def test_added_metadata_does_not_overwrite_metadata_of_the_case() -> None:
    own = {"score": 3, "case_id": "A-7", "hit_case_id": "B-9"}
    with CaseStore(note_schema()) as store:
        (stored,) = store.add([note("a saw", 1, metadata=own)])
        (document,) = CaseRetriever(store=store).invoke("a saw")
    assert {name: document.metadata[name] for name in own} == own
    assert document.metadata["hit_score"] == pytest.approx(document.metadata["relevance"])
    assert document.metadata["hit_hit_case_id"] == stored


def test_documents_are_in_search_order_for_every_setting(mended: CaseStore) -> None:
    asked: dict[str, Any] = {"weights": {"question": 1}, "lambda_b": 0.5, "where": {"year": 2021}}
    for settings in ({}, asked, {"where": {"year": {"gte": 2021, "lt": 2023}}}):
        documents = CaseRetriever(store=mended, k=3, **settings).invoke("mend the oven")
        hits = mended.search("mend the oven", 3, **settings)
        assert [document.id for document in documents] == [hit.case.id for hit in hits]
        assert [d.metadata["score"] for d in documents] == [hit.score for hit in hits]


def test_settings_of_a_call_override_retriever_settings_for_that_call_only(
    mended: CaseStore,
) -> None:
    retriever = CaseRetriever(store=mended, k=1, where={"year": 2020})
    asked: dict[str, Any] = {"k": 3, "where": {"year": [2022, 2023]}, "text": "full"}
    full = retriever.invoke("how to mend the saw", **asked)
    assert [document.metadata["year"] for document in full] == [2022, 2023]
    assert pages(full)[0] == "question: how to mend the saw\nsolution: see page 2"
    assert asyncio.run(retriever.ainvoke("how to mend the saw", **asked)) == full
    assert pages(retriever.invoke("how to mend the saw")) == ["see page 0"]


def test_search_type_mmr_returns_the_selection_of_the_store(mended: CaseStore) -> None:
    mended.add([note("how to mend the saw !", f"copy {i}") for i in range(4)])
    retriever = CaseRetriever(store=mended, k=4, search_type="mmr", lambda_d=0.3)
    diverse = retriever.invoke("how to mend the saw")
    picks = mended.select("how to mend the saw", 4, lambda_d=0.3).picks
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
        made = [pages(CaseRetriever(store=store, text=text).invoke("why"))[0] for text in texts]
    assert made == ["<because>", "question: why\nsupport: s\nsolution: because\nresult: ok", "S"]


def test_text_function_that_does_not_return_a_str_is_refused(mended: CaseStore) -> None:
    retriever = CaseRetriever(store=mended, text=lambda case: case.solution.encode())
    with pytest.raises(InputError, match="must return a str"):
        retriever.invoke("saw")


WRONG = [
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


@pytest.mark.parametrize(("settings", "told"), WRONG, ids=str)
def test_invalid_setting_is_refused_in_constructor_and_call(
    mended: CaseStore, settings: dict[str, Any], told: str
) -> None:
    with pytest.raises(InputError, match=told):
        CaseRetriever(store=mended, **settings)
    with pytest.raises(InputError, match=told):
        CaseRetriever(store=mended).invoke("saw", **settings)


def test_retriever_without_a_store_is_refused() -> None:
    with pytest.raises(InputError, match="store: Field required"):
        CaseRetriever(k=3)  # type: ignore[call-arg]
    with pytest.raises(InputError, match="store='cases': Input should be an instance of Searched"):
        CaseRetriever(store="cases")  # type: ignore[arg-type]


@pytest.mark.parametrize("query", [None, 3, {"question": "saw"}], ids=str)
def test_query_that_is_not_a_text_is_refused(mended: CaseStore, query: Any) -> None:
    with pytest.raises(InputError, match="Give a text"):
        CaseRetriever(store=mended).invoke(query)


def test_retriever_of_a_tenant_finds_no_case_of_another_tenant(place: str) -> None:
    with CaseStore(note_schema(), place) as store:
        acme, zeta = store.for_tenant("acme"), store.for_tenant("zeta")
        acme.add([note("how to mend the saw", "acme's way")])
        zeta.add([note("how to mend the saw", "zeta's way")])
        with acme, zeta:
            retriever = CaseRetriever(store=acme)
            (document,) = retriever.invoke("how to mend the saw")
            assert (document.page_content, document.metadata["tenant"]) == ("acme's way", "acme")
            assert pages(retriever.invoke("saw", search_type="mmr")) == ["acme's way"]
            with pytest.raises(InputError, match="'zeta'"):
                retriever.invoke("saw", where={"tenant": "zeta"})


@pytest.mark.parametrize("search_type", ["similarity", "mmr"])
def test_retriever_returns_no_document_from_empty_store_and_all_from_small_store(
    place: str, search_type: Any
) -> None:
    with CaseStore(note_schema(), place) as store:
        retriever = CaseRetriever(store=store, k=50, search_type=search_type)
        assert retriever.invoke("anything") == []
        store.add([note(f"question {i}", str(i)) for i in range(3)])
        assert sorted(pages(retriever.invoke("anything"))) == ["0", "1", "2"]


def test_retriever_with_a_closed_store_raises_store_error(mended: CaseStore) -> None:
    retriever = CaseRetriever(store=mended)
    mended.close()
    with pytest.raises(StoreError, match="closed"):
        retriever.invoke("saw")
    with pytest.raises(StoreError, match="closed"):
        asyncio.run(retriever.ainvoke("saw"))


def test_concurrent_calls_each_get_the_answer_to_their_query(place: str) -> None:
    with CaseStore(note_schema("wide", HashingEncoder(512)), place) as store:
        store.add([note(f"question number {i}", str(i)) for i in range(40)])
        retriever = CaseRetriever(store=store, k=3)
        queries = [f"question number {i}" for i in range(12)]

        async def everybody() -> list[list[Document]]:
            return await asyncio.gather(*(retriever.ainvoke(query) for query in queries))

        answers = asyncio.run(everybody())
        assert answers == retriever.batch(queries)
    assert [pages(found)[0] for found in answers] == [str(i) for i in range(12)]


def test_event_loop_runs_while_a_store_is_searched(mended: CaseStore) -> None:
    seen: list[str] = []

    def slow(case: Case) -> str:
        # Runs in the search's thread: it can only end if the loop runs beside it.
        asyncio.run_coroutine_threadsafe(tell(), loop).result(timeout=20)
        return str(case.solution)

    async def tell() -> None:
        seen.append("told")

    async def ask() -> list[Document]:
        return await CaseRetriever(store=mended, k=2, text=slow).ainvoke("saw")

    loop = asyncio.new_event_loop()
    try:
        assert len(loop.run_until_complete(ask())) == 2
    finally:
        loop.close()
    assert seen == ["told", "told"]


@pytest.mark.parametrize("search_type", ["similarity", "mmr"])
def test_retriever_tool_of_langchain_returns_the_documents_of_the_store(
    mended: CaseStore, search_type: Any
) -> None:
    retriever = CaseRetriever(store=mended, k=2, search_type=search_type)
    tool = create_retriever_tool(
        retriever, "manual", "Searches the manual.", response_format="content_and_artifact"
    )
    call = {"type": "tool_call", "name": "manual", "args": {"query": "mend the saw"}, "id": "1"}
    message = tool.invoke(call)
    found = retriever.invoke("mend the saw")
    assert message.content == "\n\n".join(pages(found))
    assert message.artifact == found
    assert asyncio.run(tool.ainvoke(call)).content == message.content
    plain = create_retriever_tool(retriever, "manual", "Searches the manual.")
    assert plain.invoke({"query": "mend the saw"}) == message.content


def test_retriever_works_in_a_chain_with_configurable_k(mended: CaseStore) -> None:
    chain = CaseRetriever(store=mended, k=1).configurable_fields(
        k=ConfigurableField(id="k")
    ) | RunnableLambda(pages)
    assert chain.invoke("how to mend the oven") == ["see page 1"]
    assert len(chain.invoke("oven", config={"configurable": {"k": 4}})) == 4


def test_stores_are_imported_without_langchain_and_llamaindex() -> None:
    code = (
        "import sys, casewright.stores; print({'langchain_core', 'llama_index'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "set()\n")
