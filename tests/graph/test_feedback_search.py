"""Searches of a feedback loop: conditions, tenants, deleted cases and failing strategies."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
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
    Scripted,
    all_relevant,
    ids,
    loop,
    note_store,
    run,
    total,
)
from tests.stores.helpers import note, note_schema

STRATEGIES = [
    RocchioStrategy(),
    TextStrategy(),
    SentenceStrategy(),
    NeighbourStrategy(),
]
MODES = pytest.mark.parametrize("mode", ["sync", "async"])
EACH = pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.name)
FAR = {"rounds": 9, "candidates": 40}


@pytest.fixture(scope="module")
def store() -> Iterator[CaseStore]:
    with note_store() as opened:
        yield opened


@MODES
@EACH
def test_where_condition_holds_in_every_round(
    store: CaseStore, mode: str, strategy: Strategy
) -> None:
    judge = Scripted()
    result = run(
        mode,
        build_feedback(store, judge, strategy, limits=FeedbackLimits(first=4, more=3, rounds=9)),
        where={"even": True},
    )
    assert result.reason == "exhausted"
    assert sorted(ids(result)) == sorted(case.id for case in store.all({"even": True}))
    assert len(result.rounds) > 3


@MODES
@EACH
def test_loop_finds_only_cases_of_its_tenant_in_every_round(mode: str, strategy: Strategy) -> None:
    with CaseStore(note_schema("owned", tenanted=True), tenant="ann") as ann:
        ann.add([note(text) for text in TEXTS[:9]])
        with ann.for_tenant("bob") as bob:
            bob.add([note(f"{text} of bob") for text in TEXTS])
            judge = Scripted()
            result = loop(mode, ann, judge, strategy, limits=FAR)
            assert result.reason == "exhausted"
            assert sorted(judge.ids) == sorted(case.id for case in ann.all())
            assert len(judge.ids) == 9


@MODES
def test_loop_over_an_empty_store_returns_no_hits(mode: str) -> None:
    with CaseStore(note_schema("empty")) as empty:
        judge = Scripted()
        result = loop(mode, empty, judge)
        assert (result.hits, result.reason, judge.asked) == ([], "exhausted", [])
        assert [one["found"] for one in result.rounds] == [0]


@MODES
def test_where_condition_that_no_case_meets_returns_no_hits(store: CaseStore, mode: str) -> None:
    result = run(mode, build_feedback(store, Scripted()), where={"even": "never"})
    assert (result.hits, result.reason) == ([], "exhausted")


@MODES
@pytest.mark.parametrize(
    "given",
    [{"question": "  "}, {"question": 7}, {"where": {"even": object()}}],
    ids=["empty", "number", "where"],
)
def test_invalid_question_or_where_condition_is_an_input_error(
    store: CaseStore, mode: str, given: dict[str, Any]
) -> None:
    with pytest.raises(InputError):
        run(mode, build_feedback(store, Scripted()), **given)


@MODES
@pytest.mark.parametrize("which", ["relevant", "unseen", "all"])
def test_case_deleted_during_the_loop_is_left_out(mode: str, which: str) -> None:
    with note_store() as own:
        gone: list[str] = []

        class Deletes(RocchioStrategy):
            """Searches, and then somebody deletes."""

            def search(self, question: Question, feedback: Feedback, k: int) -> list[Found]:
                found = super().search(question, feedback, k)
                if not gone:
                    near = [one.hit.case.id for one in found]
                    known = [one.id for one in feedback.relevant]
                    gone.extend({"relevant": known[:1], "unseen": near[:1], "all": near}[which])
                    own.delete(gone)
                return found

        judge = Scripted()
        result = loop(mode, own, judge, Deletes(), limits={"rounds": 9, "candidates": 12})
        told = ids(result)
        assert gone
        assert set(told).isdisjoint(gone)
        assert len(result.candidates) <= 12
        assert all(one.id not in gone for asked in judge.asked[1:] for one in asked.relevant)
        if which == "all":
            # Nothing was left to judge in that round.
            assert (result.reason, len(told)) == ("settled", 4)
        else:
            assert (result.reason, len(told)) == ("candidates", 11)


def found_again(question: Question, feedback: Feedback, k: int) -> Any:
    """Everything that was seen, and one case twice that was not."""
    hits = question.hits(sorted(feedback.seen))
    new = question.best(1, exclude=feedback.seen)
    return [*(Found(hit, 1.0) for hit in hits), *new, *new]


def not_a_number(question: Question, feedback: Feedback, k: int) -> Any:
    return [Found(one.hit, float("nan")) for one in question.best(3, exclude=feedback.seen)]


def no_score(question: Question, feedback: Feedback, k: int) -> Any:
    none: Any = None
    return [Found(one.hit, none) for one in question.best(3, exclude=feedback.seen)]


def foreign(question: Question, feedback: Feedback, k: int) -> Any:
    """A hit of a case that the store does not have."""
    hit = feedback.relevant[0].hit
    other = note("elsewhere", id="00000000-0000-4000-8000-000000000001")
    return [Found(Hit(other, 1.0, 1.0, hit.facet_scores, hit.vector), 1.0)]


def far_too_many(question: Question, feedback: Feedback, k: int) -> Any:
    return question.best(99, exclude=feedback.seen)


def raises(error: BaseException) -> Any:
    def search(question: Question, feedback: Feedback, k: int) -> Any:
        raise error

    return search


@dataclass
class Searches:
    """A strategy that is a function."""

    by: Callable[[Question, Feedback, int], Any]
    name: str = "a test's"

    def search(self, question: Question, feedback: Feedback, k: int) -> Any:
        return self.by(question, feedback, k)


@MODES
@pytest.mark.parametrize(
    ("by", "reason"),
    [
        (found_again, "rounds"),
        (far_too_many, "rounds"),
        (not_a_number, "exhausted"),
        (foreign, "settled"),
        (lambda question, feedback, k: None, "search_failed"),
        (lambda question, feedback, k: [None], "search_failed"),
        (no_score, "search_failed"),
        (raises(ValueError("broken \ud800")), "search_failed"),
        (raises(InputError("Its index is empty.")), "search_failed"),
        (raises(TimeoutError()), "search_failed"),
        (raises(SystemExit(2)), "search_failed"),
        (raises(StopIteration()), "search_failed"),
        (raises(asyncio.CancelledError()), "search_failed"),
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
    store: CaseStore, mode: str, by: Any, reason: str
) -> None:
    judge = Scripted()
    result = loop(mode, store, judge, Searches(by), limits={"rounds": 3})
    assert result.reason == reason
    assert ids(result)[:4] == [hit.case.id for hit in store.search(QUESTION, 4)]
    assert result.confirmed
    assert len(judge.ids) == len(set(judge.ids))
    assert total(result)[:1] == [4]
    assert all(one["found"] <= 4 for one in result.rounds)
    if reason == "search_failed":
        assert result.rounds[-1]["note"].startswith("The next search failed: ")


@MODES
def test_hanging_strategy_ends_the_loop_at_its_deadline(store: CaseStore, mode: str) -> None:
    started = time.perf_counter()
    result = loop(
        mode, store, Scripted(), Searches(lambda *given: time.sleep(1.5)), limits={"seconds": 0.4}
    )
    assert time.perf_counter() - started < 1.4
    assert (result.reason, len(result.hits), result.confirmed) == ("deadline", 4, True)


def test_judge_reads_the_text_of_the_text_function_cut_to_the_character_limit(
    store: CaseStore,
) -> None:
    judge = Scripted()
    loop(
        "sync",
        store,
        judge,
        text=lambda case: f"read: {case.problem['question']}",
        limits={"characters": 12, "rounds": 2},
    )
    shown = [one.text for asked in judge.asked for one in (*asked.candidates, *asked.relevant)]
    assert all(text.startswith("read: ") and len(text) == 12 for text in shown)
    assert all_relevant(judge.asked[0]).relevant == {one.id for one in judge.asked[1].relevant}


@pytest.mark.parametrize("bad", [0, -1, True, 2.5, float("inf"), float("nan"), "4"], ids=repr)
@pytest.mark.parametrize("name", ["rounds", "seconds"])
def test_feedback_limits_refuse_values_that_are_not_above_0(name: str, bad: Any) -> None:
    if name == "seconds" and bad == 2.5:
        assert FeedbackLimits(seconds=bad).seconds == bad
        return
    with pytest.raises(InputError, match=f"FeedbackLimits.{name} is"):
        FeedbackLimits(**{name: bad})
