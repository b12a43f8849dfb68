"""Arguments of a feedback loop, and the errors for invalid ones."""

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
def test_invalid_judge_is_refused_before_any_search(store: CaseStore, judge: Any) -> None:
    with pytest.raises(InputError, match="The judge"):
        build_feedback(store, judge)


def test_invalid_strategy_store_or_limits_are_refused(store: CaseStore) -> None:
    with pytest.raises(InputError, match="The strategy"):
        build_feedback(store, Scripted(), "rocchio")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="CaseStore"):
        build_feedback(None, Scripted())  # type: ignore[arg-type]
    with pytest.raises(InputError, match="FeedbackLimits"):
        build_feedback(store, Scripted(), limits={"first": 3})  # type: ignore[arg-type]


@pytest.mark.parametrize("seconds", [1e300, float("inf"), float("nan"), 0, "3", True])
def test_invalid_seconds_are_refused(seconds: Any) -> None:
    with pytest.raises(InputError, match="seconds"):
        FeedbackLimits(seconds=seconds)


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("text", [lambda case: None, lambda case: 1 / 0], ids=["none", "raises"])
def test_text_function_that_fails_is_reported_with_its_case(
    store: CaseStore, mode: str, text: Any
) -> None:
    with pytest.raises(InputError, match="The text of case"):
        loop(mode, store, Scripted(), text=text)


def test_result_of_a_loop_that_waits_for_a_reply_is_refused() -> None:
    with pytest.raises(InputError, match="waits for a reply"):
        FeedbackResult.from_state({})


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_loop_keeps_its_verdicts_when_the_store_is_closed_meanwhile(mode: str) -> None:
    own = note_store()

    def close(request: Any) -> Verdicts:
        own.close()
        return Verdicts(frozenset(one.id for one in request.candidates[:2]))

    result = loop(mode, own, Scripted(close), RocchioStrategy())
    assert result.reason == "search_failed"
    assert sum(bool(one["relevant"]) for one in result.candidates) == 2


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_loop_ends_at_its_deadline_when_the_verdicts_are_endless(
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


def test_verdict_ids_given_as_one_text_are_ignored_with_a_note(store: CaseStore) -> None:
    result = loop("sync", store, Scripted(lambda r: Verdicts(r.candidates[0].id)))
    assert result.reason == "nothing_relevant"
    assert "is a text" in result.rounds[0]["note"]


def test_loop_embeds_the_question_once() -> None:
    encoder = HashingEncoder()
    own = CaseStore(CaseSchema("once", (text_facet("question", encoder),)))
    own.add([note(f"the river number {n}") for n in range(30)])
    encoder.calls.clear()
    result = loop("sync", own, Scripted(), RocchioStrategy(), limits={"rounds": 5})
    assert len(result.rounds) == 5
    assert encoder.calls == [[QUESTION]]


def test_feedback_search_returns_the_same_hits_in_several_threads(store: CaseStore) -> None:
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


def test_hanging_first_search_raises_a_store_error() -> None:
    class Hanging(HashingEncoder):
        def embed(self, texts: Any) -> Any:
            if list(texts) == [QUESTION]:
                time.sleep(3)
            return super().embed(texts)

    own = CaseStore(CaseSchema("hangs", (text_facet("question", Hanging()),)))
    own.add([note("the river")])
    with pytest.raises(StoreError, match="The first search"):
        loop("sync", own, Scripted(), limits={"seconds": 0.1})
