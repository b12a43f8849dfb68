from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle
from llama_index.core.vector_stores import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)

from casewright.errors import InputError, StoreError
from casewright.stores import CaseStore
from casewright.stores.retrievers.llamaindex import CaseNodeRetriever, where_of
from tests.stores.helpers import note, note_schema
from tests.support.encoders import HashingEncoder

THINGS = ("mill", "oven", "saw", "lathe", "press")


@pytest.fixture
def filled_store() -> Iterator[CaseStore]:
    with CaseStore(note_schema()) as store:
        store.add(
            note(
                f"how to mend the {machine}",
                f"see page {i}",
                metadata={"year": 2020 + i, "thing": machine, "halls": ["A", "B"][: i % 2 + 1]},
            )
            for i, machine in enumerate(THINGS)
        )
        yield store


def filter_on(key: str, value: Any, operator: str = "==") -> MetadataFilter:
    return MetadataFilter(key=key, value=value, operator=FilterOperator(operator))


def filter_group(*filters: Any, by: str = "and") -> MetadataFilters:
    return MetadataFilters(filters=list(filters), condition=FilterCondition(by))


def machine_names(nodes: list[NodeWithScore]) -> list[str]:
    return sorted(str(node.metadata["thing"]) for node in nodes)


def test_node_has_text_id_metadata_and_score_of_the_case(filled_store: CaseStore) -> None:
    retriever = CaseNodeRetriever(filled_store, k=2)
    assert isinstance(retriever, BaseRetriever)
    nodes = retriever.retrieve("how to mend the saw")
    hits = filled_store.search("how to mend the saw", 2)
    assert [(n.node_id, n.score) for n in nodes] == [(h.case.id, h.score) for h in hits]
    assert nodes[0].text == "see page 2"
    assert nodes[0].metadata == {
        "year": 2022,
        "thing": "saw",
        "halls": ["A"],
        "score": hits[0].score,
        "relevance": hits[0].relevance,
        "facet_scores": dict(hits[0].facet_scores),
        "case_id": hits[0].case.id,
    }


def test_node_content_for_the_model_has_case_metadata_and_no_scores(
    filled_store: CaseStore,
) -> None:
    (node,) = CaseNodeRetriever(filled_store, k=1).retrieve("how to mend the saw")
    content = node.get_content(MetadataMode.LLM)
    assert content == "year: 2022\nthing: saw\nhalls: ['A']\n\nsee page 2"


def test_nodes_are_those_of_search_and_select_for_every_setting(filled_store: CaseStore) -> None:
    filled_store.add(
        [note("how to mend the saw !", i, metadata={"thing": "copy"}) for i in range(3)]
    )
    custom: dict[str, Any] = {"weights": {"question": 2}, "lambda_b": 0.5, "where": {"year": 2021}}
    for settings in ({}, custom):
        nodes = CaseNodeRetriever(filled_store, k=4, **settings).retrieve("mend the saw")
        hits = filled_store.search("mend the saw", 4, **settings)
        assert [node.node_id for node in nodes] == [hit.case.id for hit in hits]
    diverse = CaseNodeRetriever(filled_store, k=4, search_type="mmr", lambda_d=0.3)
    picks = filled_store.select("mend the saw", 4, lambda_d=0.3).picks
    nodes = diverse.retrieve("mend the saw")
    assert [node.node_id for node in nodes] == [pick.hit.case.id for pick in picks]
    full = CaseNodeRetriever(filled_store, k=1, text="full").retrieve("how to mend the mill")
    assert full[0].text == "question: how to mend the mill\nsolution: see page 0"


FILTERS = [
    (filter_group(), THINGS),
    (filter_group(filter_on("thing", "saw")), ["saw"]),
    (filter_group(filter_on("year", 2021)), ["oven"]),
    (filter_group(filter_on("thing", ["saw", "mill"], "in")), ["mill", "saw"]),
    (filter_group(filter_on("year", [2020, 2024], "in")), ["mill", "press"]),
    (filter_group(filter_on("thing", "saw", "!=")), ["lathe", "mill", "oven", "press"]),
    (filter_group(filter_on("year", [2020, 2024], "nin")), ["lathe", "oven", "saw"]),
    (filter_group(filter_on("year", 2022, ">")), ["lathe", "press"]),
    (filter_group(filter_on("year", 2021, ">="), filter_on("year", 2023, "<")), ["oven", "saw"]),
    (filter_group(filter_on("year", 2020.5, "<=")), ["mill"]),
    (filter_group(filter_on("halls", "B", "contains")), ["lathe", "oven"]),
    (filter_group(filter_on("halls", ["B", "C"], "any")), ["lathe", "oven"]),
    (filter_group(filter_on("thing", ["saw", "oven"], "in"), filter_on("year", 2022)), ["saw"]),
    (
        filter_group(
            filter_group(filter_on("thing", ["saw", "oven"], "in")), filter_on("year", 2021)
        ),
        ["oven"],
    ),
    (filter_group(filter_on("thing", "saw"), by="or"), ["saw"]),
    (filter_group(filter_on("thing", "nothing")), []),
]


@pytest.mark.parametrize(("filters", "expected"), FILTERS, ids=lambda value: str(value)[:60])
def test_llamaindex_filters_select_matching_cases(
    filled_store: CaseStore, filters: MetadataFilters, expected: list[str]
) -> None:
    nodes = CaseNodeRetriever(filled_store, k=9, filters=filters).retrieve("how to mend it")
    assert machine_names(nodes) == sorted(expected)


REFUSED_FILTERS = [
    (filter_group(filter_on("halls", ["A"], "all")), "'all'"),
    (filter_group(filter_on("thing", "sa", "text_match")), "'text_match'"),
    (filter_group(filter_on("thing", "sa", "text_match_insensitive")), "'text_match_insensitive'"),
    (filter_group(filter_on("thing", None, "is_empty")), "'is_empty'"),
    (filter_group(filter_on("thing", "saw"), filter_on("thing", "oven"), by="or"), "'or'"),
    (filter_group(filter_on("thing", "saw"), by="not"), "'not'"),
    (filter_group(filter_group(filter_on("year", 1), filter_on("year", 2), by="or")), "'or'"),
    (filter_group(filter_on("thing", "saw", "in")), "'in' 'saw'. Give a list"),
    (filter_group(filter_on("thing", ["saw"])), "'=='.*Give one value"),
    (filter_group(filter_on("thing", None)), "thing = None"),
    (filter_group(filter_on("year", "old", ">")), "year"),
    (filter_group(filter_on("thing", "saw"), filter_on("thing", "oven")), "twice for 'thing'"),
    (filter_group(filter_on("year", 1, ">"), filter_on("year", 2, ">")), "twice for 'year'"),
    (filter_group(filter_on("year", 1, "!="), filter_on("year", 2, ">")), "twice for 'year'"),
]


@pytest.mark.parametrize(("filters", "message"), REFUSED_FILTERS, ids=lambda value: str(value)[:60])
def test_unsupported_filter_is_refused_and_named(
    filled_store: CaseStore, filters: MetadataFilters, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        CaseNodeRetriever(filled_store, filters=filters)


@pytest.mark.parametrize("operator", FilterOperator)
def test_every_operator_of_llamaindex_is_translated_or_refused(operator: FilterOperator) -> None:
    takes_list = operator.value in ("in", "any", "nin", "all")
    filters = filter_group(filter_on("field", [1] if takes_list else 1, operator.value))
    if operator.value in ("all", "text_match", "text_match_insensitive", "is_empty"):
        with pytest.raises(InputError, match=f"'{operator.value}'"):
            where_of(filters)
    else:
        assert list(where_of(filters)) == ["field"]


def test_filters_and_where_apply_together_but_not_on_one_field(filled_store: CaseStore) -> None:
    filters = filter_group(filter_on("thing", ["saw", "oven"], "in"))
    nodes = CaseNodeRetriever(filled_store, where={"year": 2022}, filters=filters).retrieve("mend")
    assert machine_names(nodes) == ["saw"]
    with pytest.raises(InputError, match=r"both have a condition on \['thing'\]"):
        CaseNodeRetriever(filled_store, where={"thing": "saw"}, filters=filters)


@pytest.mark.parametrize(
    "settings", [{"k": 0}, {"k": "3"}, {"lambda_b": -1}, {"search_type": "best"}], ids=str
)
def test_invalid_setting_is_refused_by_name(
    filled_store: CaseStore, settings: dict[str, Any]
) -> None:
    (name,) = settings
    with pytest.raises(InputError, match=f"{name}={settings[name]!r}"):
        CaseNodeRetriever(filled_store, **settings)


def test_weights_that_name_no_facet_are_refused(filled_store: CaseStore) -> None:
    with pytest.raises(InputError, match="no facet"):
        CaseNodeRetriever(filled_store, weights={"colour": 1})


def test_query_engine_answers_from_cases_without_scores_in_the_prompt(
    filled_store: CaseStore,
) -> None:
    retriever = CaseNodeRetriever(filled_store, k=2)
    engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM())
    for response in (
        engine.query("how to mend the saw"),
        asyncio.run(engine.aquery("how to mend the saw")),
    ):
        # The mock model's answer is its prompt.
        assert "see page 2" in str(response)
        assert "facet_scores" not in str(response)
        assert [n.node_id for n in response.source_nodes] == [
            hit.case.id for hit in filled_store.search("how to mend the saw", 2)
        ]


def test_query_bundle_with_several_texts_is_searched_by_all_texts(filled_store: CaseStore) -> None:
    bundle = QueryBundle("what now?", custom_embedding_strs=["mend the saw", "mend the press"])
    nodes = CaseNodeRetriever(filled_store, k=2).retrieve(bundle)
    assert machine_names(nodes) == ["press", "saw"]


def test_concurrent_async_calls_each_get_the_answer_to_their_query(location: str) -> None:
    with CaseStore(note_schema("wide", HashingEncoder(512)), location) as store:
        store.add([note(f"question number {i}", str(i)) for i in range(40)])
        retriever = CaseNodeRetriever(store, k=1)

        async def retrieve_all() -> list[list[NodeWithScore]]:
            calls = (retriever.aretrieve(f"question number {i}") for i in range(40))
            return await asyncio.gather(*calls)

        answers = asyncio.run(retrieve_all())
    assert [nodes[0].text for nodes in answers] == [str(i) for i in range(40)]


def test_retriever_of_a_tenant_finds_no_case_of_another_tenant(location: str) -> None:
    with CaseStore(note_schema(), location) as store:
        acme, zeta = store.for_tenant("acme"), store.for_tenant("zeta")
        acme.add([note("how to mend the saw", "acme's way")])
        zeta.add([note("how to mend the saw", "zeta's way")])
        with acme, zeta:
            nodes = CaseNodeRetriever(acme).retrieve("how to mend the saw")
            assert [node.text for node in nodes] == ["acme's way"]
            other_tenant = filter_group(filter_on("tenant", "zeta"))
            with pytest.raises(InputError, match="'zeta'"):
                CaseNodeRetriever(acme, filters=other_tenant).retrieve("saw")


def test_retriever_returns_no_node_from_empty_store_and_error_from_closed_store() -> None:
    store = CaseStore(note_schema())
    retriever = CaseNodeRetriever(store, k=50)
    assert retriever.retrieve("anything") == []
    store.add([note("a question", 1)])
    assert len(retriever.retrieve("anything")) == 1
    store.close()
    with pytest.raises(StoreError, match="closed"):
        retriever.retrieve("anything")
    with pytest.raises(StoreError, match="closed"):
        asyncio.run(retriever.aretrieve("anything"))


def test_missing_llamaindex_error_gives_the_install_command(tmp_path: Path) -> None:
    (tmp_path / "llama_index.py").write_text("raise ImportError('not here')\n")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from casewright.errors import DependencyError\n"
        "try:\n    import casewright.stores.retrievers.llamaindex\n"
        "except DependencyError as error:\n    print(error)\n"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert "pip install llama-index-core" in process.stdout, process.stderr
