"""What a feedback loop is made of, and what it says where that cannot be used."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from casewright.errors import InputError, StoreError
from casewright.graph.feedback import FeedbackLimits, FeedbackResult, FeedbackSearch, build_feedback
from casewright.stores import CaseSchema, CaseStore, text_facet
from casewright.stores.feedback import RocchioStrategy, Verdicts
from casewright.tools import CallContext
from tests.graph.feedback_helpers import QUESTION, Scripted, loop, note_store
from tests.stores.helpers import note
from tests.support.encoders import HashingEncoder


class Nameless:
    def judge(self, request: Any) -> Verdicts:
        return Verdicts(frozenset())


class Misnamed(Nameless):
    name = 5


@pytest.fixture(scope="module")
def store() -> CaseStore:
    return note_store()


@pytest.mark.parametrize(
    "judge", [Nameless(), Misnamed(), None, lambda request: None], ids=["a", "b", "c", "d"]
)
def test_a_judge_that_is_none_is_refused_before_anything_is_searched(
    store: CaseStore, judge: Any
) -> None:
    with pytest.raises(InputError, match="The judge"):
        build_feedback(store, judge)


def test_a_strategy_store_or_limits_that_are_none_are_refused(store: CaseStore) -> None:
    with pytest.raises(InputError, match="The strategy"):
        build_feedback(store, Scripted(), "rocchio")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="CaseStore"):
        build_feedback(None, Scripted())  # type: ignore[arg-type]
    with pytest.raises(InputError, match="FeedbackLimits"):
        build_feedback(store, Scripted(), limits={"first": 3})  # type: ignore[arg-type]


@pytest.mark.parametrize("seconds", [1e300, float("inf"), float("nan"), 0, "3", True])
def test_seconds_that_no_clock_takes_are_refused(seconds: Any) -> None:
    with pytest.raises(InputError, match="seconds"):
        FeedbackLimits(seconds=seconds)


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("text", [lambda case: None, lambda case: 1 / 0], ids=["none", "raises"])
def test_a_text_that_cannot_be_made_is_named(store: CaseStore, mode: str, text: Any) -> None:
    with pytest.raises(InputError, match="The text of case"):
        loop(mode, store, Scripted(), text=text)


def test_a_loop_that_waits_for_a_person_has_no_result_yet() -> None:
    with pytest.raises(InputError, match="waits for a reply"):
        FeedbackResult.from_state({})


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_store_that_is_closed_meanwhile_loses_no_verdict(mode: str) -> None:
    own = note_store()

    def close(request: Any) -> Verdicts:
        own.close()
        return Verdicts(frozenset(one.id for one in request.candidates[:2]))

    result = loop(mode, own, Scripted(close), RocchioStrategy())
    assert result.reason == "search_failed"
    assert sum(bool(one["relevant"]) for one in result.candidates) == 2


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_verdicts_that_are_made_while_they_are_read_end_in_time(
    store: CaseStore, mode: str
) -> None:
    def endless() -> Any:
        while True:
            time.sleep(0.05)
            yield "one more"

    script = Scripted(lambda request: Verdicts(endless()))  # type: ignore[arg-type]
    started = time.perf_counter()
    result = loop(mode, store, script, limits={"seconds": 0.2})
    assert time.perf_counter() - started < 3
    assert result.reason == "deadline"


def test_ids_given_as_a_text_are_no_ids(store: CaseStore) -> None:
    result = loop("sync", store, Scripted(lambda r: Verdicts(r.candidates[0].id)))
    assert result.reason == "nothing_relevant"
    assert "is a text" in result.rounds[0]["note"]


def test_a_question_is_embedded_once_in_a_whole_loop() -> None:
    encoder = HashingEncoder()
    own = CaseStore(CaseSchema("once", (text_facet("question", encoder),)))
    own.add([note(f"the river number {n}") for n in range(30)])
    encoder.calls.clear()
    result = loop("sync", own, Scripted(), RocchioStrategy(), limits={"rounds": 5})
    assert len(result.rounds) == 5
    assert encoder.calls == [[QUESTION]]


def test_one_search_serves_several_threads(store: CaseStore) -> None:
    search = FeedbackSearch(store, Scripted(), RocchioStrategy())
    found: list[list[str]] = []

    def ask() -> None:
        hits = search(QUESTION, 8, {}, CallContext())
        found.append([hit.case.id for hit in hits])

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert all(one == found[0] for one in found)


def test_a_first_search_that_hangs_is_a_store_error() -> None:
    class Hanging(HashingEncoder):
        def embed(self, texts: Any) -> Any:
            if list(texts) == [QUESTION]:
                time.sleep(3)
            return super().embed(texts)

    own = CaseStore(CaseSchema("hangs", (text_facet("question", Hanging()),)))
    own.add([note("the river")])
    with pytest.raises(StoreError, match="The first search"):
        loop("sync", own, Scripted(), limits={"seconds": 0.1})
