"""The feedback loop as a LangChain retriever."""

from __future__ import annotations

import asyncio

import pytest
from pydantic import ValidationError

from casewright.errors import InputError
from casewright.graph.feedback import FeedbackLimits, FeedbackRetriever, FeedbackSearch
from casewright.stores.feedback import RocchioStrategy, Verdicts
from tests.graph.feedback_helpers import QUESTION, FakeJudge, note_store

LIMITS = FeedbackLimits(first=4, more=3, rounds=3)


def retriever(judge: FakeJudge, **options: object) -> FeedbackRetriever:
    search = FeedbackSearch(note_store(), judge, RocchioStrategy(), limits=LIMITS)
    return FeedbackRetriever(search=search, **options)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_document_metadata_contains_round_confirmation_and_stop_reason(mode: str) -> None:
    loop = retriever(FakeJudge(), k=20)
    documents = loop.invoke(QUESTION) if mode == "sync" else asyncio.run(loop.ainvoke(QUESTION))
    assert [document.metadata["round"] for document in documents] == [1] * 4 + [2] * 3 + [3] * 3
    assert all(document.metadata["confirmed"] for document in documents)
    assert {document.metadata["stopped"] for document in documents} == {"rounds"}
    assert all(document.metadata["case_id"] == document.id for document in documents)


def test_document_metadata_marks_unconfirmed_documents() -> None:
    documents = retriever(FakeJudge(lambda request: Verdicts(frozenset())), k=3).invoke(QUESTION)
    assert len(documents) == 3
    assert not any(document.metadata["confirmed"] for document in documents)
    assert documents[0].metadata["stopped"] == "nothing_relevant"


def test_where_condition_holds_for_every_document() -> None:
    documents = retriever(FakeJudge(), k=20, where={"even": True}).invoke(QUESTION)
    assert documents
    assert all(document.metadata["even"] for document in documents)


def test_blank_question_is_refused() -> None:
    with pytest.raises(InputError):
        retriever(FakeJudge()).invoke("   ")


@pytest.mark.parametrize("setting", [{"k": 0}, {"many": 3}], ids=["k of 0", "unknown"])
def test_invalid_retriever_settings_are_refused(setting: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        retriever(FakeJudge(), **setting)
