"""Searches of a feedback loop: conditions, tenants, deleted cases and failing strategies."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest

from casewright.errors import InputError
from casewright.graph.feedback import FeedbackLimits, build_feedback
from casewright.stores import CaseStore, Found, Question
from casewright.stores.feedback import (
    Feedback,
    NeighbourStrategy,
    RocchioStrategy,
    SentenceStrategy,
    Strategy,
    TextStrategy,
)
from casewright.stores.hit import Hit
from tests.graph.feedback_helpers import (
    QUESTION,
    TEXTS,
    FakeJudge,
    all_relevant,
    hit_ids,
    note_store,
    round_totals,
    run_graph,
    run_loop,
)
from tests.stores.helpers import note, note_schema

STRATEGIES = [
    RocchioStrategy(),
    TextStrategy(),
    SentenceStrategy(),
    NeighbourStrategy(),
]
MODES = pytest.mark.parametrize("mode", ["sync", "async"])
EACH_STRATEGY = pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.name)
INVALID_LIMITS = [0, -1, True, float("inf"), float("nan"), 1e300, "4"]
LOOSE_LIMITS = {"rounds": 9, "candidates": 40}


@pytest.fixture(scope="module")
def store() -> Iterator[CaseStore]:
    with note_store() as opened:
        yield opened


@MODES
@EACH_STRATEGY
def test_where_condition_holds_in_every_round(
    store: CaseStore, mode: str, strategy: Strategy
) -> None:
    judge = FakeJudge()
    result = run_graph(
        mode,
        build_feedback(store, judge, strategy, limits=FeedbackLimits(first=4, more=3, rounds=9)),
        where={"even": True},
    )
    assert result.reason == "exhausted"
    assert sorted(hit_ids(result)) == sorted(case.id for case in store.all({"even": True}))
    assert len(result.rounds) > 3


@MODES
@EACH_STRATEGY
def test_loop_finds_only_cases_of_its_tenant_in_every_round(mode: str, strategy: Strategy) -> None:
    with CaseStore(note_schema("owned", tenanted=True), tenant="ann") as ann:
        ann.add([note(text) for text in TEXTS[:9]])
        with ann.for_tenant("bob") as bob:
            bob.add([note(f"{text} of bob") for text in TEXTS])
            judge = FakeJudge()
            result = run_loop(mode, ann, judge, strategy, limits=LOOSE_LIMITS)
            assert result.reason == "exhausted"
            assert sorted(judge.judged_ids) == sorted(case.id for case in ann.all())


@MODES
def test_loop_over_an_empty_store_returns_no_hits(mode: str) -> None:
    with CaseStore(note_schema("empty")) as empty:
        judge = FakeJudge()
        result = run_loop(mode, empty, judge)
        assert (result.hits, result.reason, judge.requests) == ([], "exhausted", [])
        assert [round_["found"] for round_ in result.rounds] == [0]


@MODES
def test_where_condition_that_no_case_meets_returns_no_hits(store: CaseStore, mode: str) -> None:
    result = run_graph(mode, build_feedback(store, FakeJudge()), where={"even": "never"})
    assert (result.hits, result.reason) == ([], "exhausted")


@MODES
@pytest.mark.parametrize(
    "inputs",
    [{"question": "  "}, {"question": 7}, {"where": {"even": object()}}],
    ids=["empty", "number", "where"],
)
def test_invalid_question_or_where_condition_is_an_input_error(
    store: CaseStore, mode: str, inputs: dict[str, Any]
) -> None:
    with pytest.raises(InputError):
        run_graph(mode, build_feedback(store, FakeJudge()), **inputs)


@MODES
@pytest.mark.parametrize("kind", ["relevant", "unseen", "all"])
def test_case_deleted_during_the_loop_is_left_out(mode: str, kind: str) -> None:
    with note_store() as store:
        deleted: list[str] = []

        class Deleting(RocchioStrategy):
            """A strategy after whose first search cases are deleted."""

            def search(self, question: Question, feedback: Feedback, k: int) -> list[Found]:
                hits = super().search(question, feedback, k)
                if not deleted:
                    new = [found.hit.case.id for found in hits]
                    relevant = [case.id for case in feedback.relevant]
                    deleted.extend({"relevant": relevant[:1], "unseen": new[:1], "all": new}[kind])
                    store.delete(deleted)
                return hits

        judge = FakeJudge()
        result = run_loop(mode, store, judge, Deleting(), limits={"rounds": 9, "candidates": 12})
        left_ids = hit_ids(result)
        assert deleted
        assert set(left_ids).isdisjoint(deleted)
        assert len(result.candidates) <= 12
        for request in judge.requests[1:]:
            assert not {case.id for case in request.relevant} & set(deleted)
        if kind == "all":
            # That round had no candidate left to judge.
            assert (result.reason, len(left_ids)) == ("settled", 4)
        else:
            assert (result.reason, len(left_ids)) == ("candidates", 11)


def find_again(question: Question, feedback: Feedback, k: int) -> Any:
    """Return all seen cases, and an unseen case twice."""
    hits = question.hits(sorted(feedback.seen))
    new = question.best(1, exclude=feedback.seen)
    return [*(Found(hit, 1.0) for hit in hits), *new, *new]


def find_with_nan_score(question: Question, feedback: Feedback, k: int) -> Any:
    return [Found(found.hit, float("nan")) for found in question.best(3, exclude=feedback.seen)]


def find_without_score(question: Question, feedback: Feedback, k: int) -> Any:
    score: Any = None
    return [Found(found.hit, score) for found in question.best(3, exclude=feedback.seen)]


def find_foreign_case(question: Question, feedback: Feedback, k: int) -> Any:
    """Return a hit of a case that is not in the store."""
    hit = feedback.relevant[0].hit
    other_case = note("elsewhere", id="00000000-0000-4000-8000-000000000001")
    return [Found(Hit(other_case, 1.0, 1.0, hit.facet_scores, hit.vector), 1.0)]


def find_too_many(question: Question, feedback: Feedback, k: int) -> Any:
    return question.best(99, exclude=feedback.seen)


def raise_error(error: BaseException) -> Any:
    def search(question: Question, feedback: Feedback, k: int) -> Any:
        raise error

    return search


@dataclass
class FunctionStrategy:
    """A strategy whose search is a function."""

    function: Callable[[Question, Feedback, int], Any]
    name: str = "a test's"

    def search(self, question: Question, feedback: Feedback, k: int) -> Any:
        return self.function(question, feedback, k)


@MODES
@pytest.mark.parametrize(
    ("search", "reason"),
    [
        (find_again, "rounds"),
        (find_too_many, "rounds"),
        (find_with_nan_score, "exhausted"),
        (find_foreign_case, "settled"),
        (lambda question, feedback, k: None, "search_failed"),
        (lambda question, feedback, k: [None], "search_failed"),
        (find_without_score, "search_failed"),
        (raise_error(ValueError("broken \ud800")), "search_failed"),
        (raise_error(InputError("Its index is empty.")), "search_failed"),
        (raise_error(TimeoutError()), "search_failed"),
        (raise_error(SystemExit(2)), "search_failed"),
        (raise_error(StopIteration()), "search_failed"),
        (raise_error(asyncio.CancelledError()), "search_failed"),
    ],
    ids=[
        "seen",
        "many",
        "nan",
        "foreign",
        "none",
        "list of none",
        "no score",
        "raises",
        "input error",
        "timeout",
        "exit",
        "stop",
        "cancelled",
    ],
)
def test_loop_returns_its_hits_when_a_strategy_misbehaves(
    store: CaseStore, mode: str, search: Any, reason: str
) -> None:
    judge = FakeJudge()
    result = run_loop(mode, store, judge, FunctionStrategy(search), limits={"rounds": 3})
    assert result.reason == reason
    assert hit_ids(result)[:4] == [hit.case.id for hit in store.search(QUESTION, 4)]
    assert result.confirmed
    assert len(judge.judged_ids) == len(set(judge.judged_ids))
    assert round_totals(result)[:1] == [4]
    assert all(round_["found"] <= 4 for round_ in result.rounds)
    if reason == "search_failed":
        assert result.rounds[-1]["note"].startswith("The next search failed: ")


@MODES
def test_hanging_strategy_ends_the_loop_at_its_deadline(store: CaseStore, mode: str) -> None:
    start = time.perf_counter()
    strategy = FunctionStrategy(lambda *_: time.sleep(1.5))
    result = run_loop(mode, store, FakeJudge(), strategy, limits={"seconds": 0.4})
    assert time.perf_counter() - start < 1.4
    assert (result.reason, len(result.hits), result.confirmed) == ("deadline", 4, True)


def test_judge_reads_the_text_of_the_text_function_cut_to_the_character_limit(
    store: CaseStore,
) -> None:
    judge = FakeJudge()
    run_loop(
        "sync",
        store,
        judge,
        text=lambda case: f"read: {case.problem['question']}",
        limits={"characters": 12, "rounds": 2},
    )
    first, second = judge.requests
    cases = [*first.candidates, *second.candidates, *second.relevant]
    assert all(case.text.startswith("read: ") and len(case.text) == 12 for case in cases)
    assert all_relevant(first).relevant == {case.id for case in second.relevant}


@pytest.mark.parametrize(
    ("name", "value"), [*product(["rounds", "seconds"], INVALID_LIMITS), ("rounds", 2.5)], ids=repr
)
def test_invalid_feedback_limit_is_refused_and_named(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"FeedbackLimits.{name} is"):
        FeedbackLimits(**{name: value})
