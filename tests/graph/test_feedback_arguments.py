"""Arguments of a feedback loop, and the errors for invalid ones."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from casewright.errors import InputError, StoreError
from casewright.graph.feedback import FeedbackResult, FeedbackSearch, build_feedback
from casewright.stores import CaseSchema, CaseStore, text_facet
from casewright.stores.feedback import RocchioStrategy, Verdicts
from casewright.tools import CallContext
from tests.graph.feedback_helpers import QUESTION, FakeJudge, note_store, run_loop
from tests.stores.helpers import note
from tests.support.encoders import HashingEncoder


class NamelessJudge:
    def judge(self, request: Any) -> Verdicts:
        return Verdicts(frozenset())


class MisnamedJudge(NamelessJudge):
    name = 5


@pytest.fixture(scope="module")
def store() -> CaseStore:
    return note_store()


@pytest.mark.parametrize(
    "judge",
    [NamelessJudge(), MisnamedJudge(), None, lambda request: None],
    ids=["nameless", "misnamed", "none", "function"],
)
def test_invalid_judge_is_refused_before_any_search(store: CaseStore, judge: Any) -> None:
    with pytest.raises(InputError, match="The judge"):
        build_feedback(store, judge)


def test_invalid_strategy_store_or_limits_are_refused(store: CaseStore) -> None:
    with pytest.raises(InputError, match="The strategy"):
        build_feedback(store, FakeJudge(), "rocchio")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="CaseStore"):
        build_feedback(None, FakeJudge())  # type: ignore[arg-type]
    with pytest.raises(InputError, match="FeedbackLimits"):
        build_feedback(store, FakeJudge(), limits={"first": 3})  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("text_of", [lambda case: None, lambda case: 1 / 0], ids=["none", "raises"])
def test_error_of_a_failing_text_function_names_the_case(
    store: CaseStore, mode: str, text_of: Any
) -> None:
    with pytest.raises(InputError, match="The text of case"):
        run_loop(mode, store, FakeJudge(), text=text_of)


def test_result_of_a_loop_that_waits_for_a_reply_is_refused() -> None:
    with pytest.raises(InputError, match="waits for a reply"):
        FeedbackResult.from_state({})


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_loop_keeps_its_verdicts_when_the_store_is_closed_during_the_run(mode: str) -> None:
    store = note_store()

    def close(request: Any) -> Verdicts:
        store.close()
        return Verdicts(frozenset(case.id for case in request.candidates[:2]))

    result = run_loop(mode, store, FakeJudge(close), RocchioStrategy())
    assert result.reason == "search_failed"
    assert sum(bool(case["relevant"]) for case in result.candidates) == 2


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_loop_ends_at_its_deadline_when_the_verdicts_are_endless(
    store: CaseStore, mode: str
) -> None:
    def endless_ids() -> Any:
        while True:
            time.sleep(0.05)
            yield "one more"

    judge = FakeJudge(lambda request: Verdicts(endless_ids()))  # type: ignore[arg-type]
    start = time.perf_counter()
    result = run_loop(mode, store, judge, limits={"seconds": 0.2})
    assert time.perf_counter() - start < 3
    assert result.reason == "deadline"


def test_verdict_ids_given_as_one_text_are_ignored_with_a_note(store: CaseStore) -> None:
    result = run_loop("sync", store, FakeJudge(lambda r: Verdicts(r.candidates[0].id)))
    assert result.reason == "nothing_relevant"
    assert "is a text" in result.rounds[0]["note"]


def test_loop_embeds_the_question_once() -> None:
    encoder = HashingEncoder()
    store = CaseStore(CaseSchema("once", (text_facet("question", encoder),)))
    store.add([note(f"the river number {n}") for n in range(30)])
    encoder.calls.clear()
    result = run_loop("sync", store, FakeJudge(), RocchioStrategy(), limits={"rounds": 5})
    assert len(result.rounds) == 5
    assert encoder.calls == [[QUESTION]]


def test_feedback_search_returns_the_same_hits_in_several_threads(store: CaseStore) -> None:
    search = FeedbackSearch(store, FakeJudge(), RocchioStrategy())
    id_lists: list[list[str]] = []

    def run_search() -> None:
        hits = search(QUESTION, 8, {}, CallContext())
        id_lists.append([hit.case.id for hit in hits])

    threads = [threading.Thread(target=run_search) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(id_lists) == 6
    assert all(ids == id_lists[0] for ids in id_lists)


def test_hanging_first_search_raises_a_store_error() -> None:
    class Hanging(HashingEncoder):
        def embed(self, texts: Any) -> Any:
            if list(texts) == [QUESTION]:
                time.sleep(3)
            return super().embed(texts)

    store = CaseStore(CaseSchema("hangs", (text_facet("question", Hanging()),)))
    store.add([note("the river")])
    with pytest.raises(StoreError, match="The first search"):
        run_loop("sync", store, FakeJudge(), limits={"seconds": 0.1})
