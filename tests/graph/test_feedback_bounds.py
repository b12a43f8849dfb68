"""The loop ends within its limits and returns its hits, whatever its judge does."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casewright.graph.feedback import FeedbackResult
from casewright.stores import CaseStore
from casewright.stores.feedback import (
    JudgeRequest,
    RocchioStrategy,
    SentenceStrategy,
    TextStrategy,
    Verdicts,
)
from casewright.stores.feedback.judge import MAX_TOKENS
from tests.graph.feedback_helpers import (
    QUESTION,
    AsyncFakeJudge,
    FakeJudge,
    all_relevant,
    hit_ids,
    no_verdicts,
    note_store,
    round_totals,
    run_loop,
)
from tests.support.examples import at_most

Script = Callable[[JudgeRequest], Any]
NAN = float("nan")
STRATEGIES = [RocchioStrategy(), TextStrategy(), SentenceStrategy()]
MODES = pytest.mark.parametrize("mode", ["sync", "async"])
JUDGES = pytest.mark.parametrize("kind", [FakeJudge, AsyncFakeJudge], ids=["blocking", "awaitable"])


@pytest.fixture(scope="module")
def store() -> Iterator[CaseStore]:
    with note_store() as opened:
        yield opened


class Unreadable(Verdicts):
    """Verdicts that raise an error when they are read."""

    @property
    def items(self) -> Any:
        raise LookupError

    def __str__(self) -> str:
        raise LookupError


GARBAGE: list[Script] = [
    lambda request: None,
    lambda request: "all of them",
    lambda request: {case.id: True for case in request.candidates},
    lambda request: Verdicts(None),  # type: ignore[arg-type]
    lambda request: Verdicts(frozenset({"no such id"}), {"no such id": 0.5}),
    lambda request: Verdicts(frozenset({1, None}), {}, {"input": 2**80}, "\ud800"),  # type: ignore[arg-type]
    lambda request: Verdicts(
        frozenset(hit.id for hit in request.relevant), {hit.id: NAN for hit in request.candidates}
    ),
    lambda request: Verdicts(frozenset(), {"a": "b"}),  # type: ignore[dict-item]
    lambda request: Verdicts([[]]),  # type: ignore[arg-type]
    lambda request: Verdicts(frozenset(), {}, {"input": NAN}),  # type: ignore[dict-item]
    lambda request: Verdicts(frozenset(), {}, {}, Unreadable(frozenset())),  # type: ignore[arg-type]
    lambda request: Verdicts(frozenset(), Unreadable(frozenset())),  # type: ignore[arg-type]
    lambda request: Verdicts(frozenset(), {}, {"input": -5, "output": -7}),
]


def random_script(seed: int) -> Script:
    rng = random.Random(seed)

    def script(request: JudgeRequest) -> Any:
        ids = [case.id for case in (*request.candidates, *request.relevant) if rng.random() < 0.4]
        return Verdicts(frozenset(ids), {case_id: rng.random() for case_id in ids})

    return script


def answer_in_turn(scripts: Sequence[Script]) -> Script:
    turns = iter(scripts)
    return lambda request: next(turns)(request)


SCRIPTS = st.one_of(
    st.just(all_relevant),
    st.just(no_verdicts),
    st.integers(0, 99).map(random_script),
    st.sampled_from(GARBAGE),
)


@settings(max_examples=at_most(30), deadline=None)
@given(
    mode=st.sampled_from(["sync", "async"]),
    kind=st.sampled_from([FakeJudge, AsyncFakeJudge]),
    scripts=st.lists(SCRIPTS, min_size=1, max_size=6),
    strategy=st.sampled_from(STRATEGIES),
    first=st.integers(1, 8),
    more=st.integers(1, 6),
    rounds=st.integers(1, 7),
    candidates=st.integers(1, 30),
    tokens=st.sampled_from([5, 60, 200, 100_000]),
)
def test_loop_ends_within_its_limits_with_the_right_reason(
    store: CaseStore,
    mode: str,
    kind: type[FakeJudge],
    scripts: list[Script],
    strategy: Any,
    **limits: int,
) -> None:
    judge = kind(answer_in_turn([*scripts, *[scripts[-1]] * 10]))
    result = run_loop(mode, store, judge, strategy, limits=limits)
    judged_rounds = [round_ for round_ in result.rounds if round_["judged"]]

    assert len(result.rounds) <= limits["rounds"]
    assert len(result.candidates) <= limits["candidates"]
    # Estimated tokens stay within the limit; tokens that a judge reports are already spent.
    assert result.tokens <= limits["tokens"] or result.rounds[-1]["tokens"] == MAX_TOKENS
    # Each round calls the judge at most once, with new candidates and the relevant ones so far.
    assert len(judge.requests) == len(judged_rounds)
    assert len(judge.judged_ids) == len(set(judge.judged_ids)) == result.judged
    for number, request in enumerate(judge.requests, 1):
        assert {case.id for case in request.relevant} == {
            case["id"] for case in result.candidates if case["relevant"] and case["round"] < number
        }
    # Every round but the last adds relevant candidates.
    totals = round_totals(result)[:-1]
    assert all(total < next_total for total, next_total in zip([0, *totals], totals, strict=False))
    assert expected_reason(result, limits) == result.reason
    relevant = {case["id"] for case in result.candidates if case["relevant"]}
    assert result.confirmed == bool(relevant)
    if relevant:
        assert set(hit_ids(result)) == relevant
    else:
        best = store.search(QUESTION, min(limits["first"], limits["candidates"]))
        assert hit_ids(result) == [hit.case.id for hit in best]


def expected_reason(result: FeedbackResult, limits: dict[str, int]) -> str:
    """Return the reason why the loop must have ended, for a judge that never failed."""
    last = result.rounds[-1]
    if not last["found"]:
        return "exhausted"
    if last["judged"] < last["found"]:
        return "tokens"
    if not last["relevant"]:
        return "settled" if last["total"] else "nothing_relevant"
    if len(result.rounds) == limits["rounds"]:
        return "rounds"
    if len(result.candidates) == limits["candidates"]:
        return "candidates"
    return "tokens"


@MODES
@pytest.mark.parametrize("index", range(len(GARBAGE)))
def test_nonsensical_verdicts_mark_no_candidate_as_relevant(
    store: CaseStore, mode: str, index: int
) -> None:
    for turns in ([], [all_relevant]):
        result = run_loop(mode, store, FakeJudge(answer_in_turn([*turns, GARBAGE[index]])))
        assert result.reason == ("settled" if turns else "nothing_relevant")
        assert len(result.hits) == 4
        assert result.confirmed == bool(turns)


FAILURES = [
    ValueError("the model is not there"),
    KeyError("key"),
    TimeoutError("the connection's own"),
    TimeoutError(),
    SystemExit(3),
    StopIteration(),
    StopAsyncIteration(),
    asyncio.CancelledError(),
    RecursionError(),
    UnicodeError("half a pair \ud800"),
]


@MODES
@JUDGES
@pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
def test_judge_that_raises_ends_the_loop_without_losing_hits(
    store: CaseStore, mode: str, kind: type[FakeJudge], error: BaseException
) -> None:
    for rounds_before in (0, 1):
        judge = kind()

        def script(request: JudgeRequest, judge: FakeJudge = judge, n: int = rounds_before) -> Any:
            if len(judge.requests) > n:
                raise error
            return all_relevant(request)

        judge.script = script
        result = run_loop(mode, store, judge)
        assert result.reason == "judge_failed"
        assert result.rounds[-1]["note"].startswith("The judge failed: ")
        assert len(result.hits) == 4
        assert result.confirmed == bool(rounds_before)
        assert [case["relevant"] for case in result.candidates[4 * rounds_before :]] == (
            [None] * (len(result.candidates) - 4 * rounds_before)
        )


@MODES
def test_failed_verdicts_end_the_loop_as_an_exception_does(store: CaseStore, mode: str) -> None:
    def script(request: JudgeRequest) -> Any:
        if request.relevant:
            relevant = frozenset(case.id for case in request.candidates)
            return Verdicts(relevant, {}, {"input": 7}, "No quota is left.", failed=True)
        return all_relevant(request)

    result = run_loop(mode, store, FakeJudge(script))
    assert result.reason == "judge_failed"
    assert result.rounds[-1]["note"] == "The judge failed: No quota is left."
    assert (result.rounds[-1]["judged"], result.rounds[-1]["tokens"]) == (0, 7)
    assert hit_ids(result) == [case["id"] for case in result.candidates if case["round"] == 1]


async def swallow_cancellation(request: JudgeRequest) -> Verdicts:
    end = time.perf_counter() + 5
    while time.perf_counter() < end:
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            continue
    return Verdicts(frozenset())


def hang(request: JudgeRequest) -> Verdicts:
    time.sleep(1.5)
    return all_relevant(request)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("mode", "judge"),
    [
        ("sync", FakeJudge(hang)),
        ("async", FakeJudge(hang)),
        ("async", AsyncFakeJudge(lambda request: asyncio.sleep(5))),
        ("async", AsyncFakeJudge(swallow_cancellation)),
    ],
    ids=["sync", "async thread", "async sleep", "async swallow"],
)
def test_hanging_judge_ends_the_loop_at_its_deadline(
    store: CaseStore, mode: str, judge: FakeJudge
) -> None:
    original_script = judge.script

    def script(request: JudgeRequest) -> Any:
        return original_script(request) if request.relevant else all_relevant(request)

    judge.script = script
    start = time.perf_counter()
    result = run_loop(mode, store, judge, limits={"seconds": 0.4})
    assert time.perf_counter() - start < 1.4
    assert result.reason == "deadline"
    assert len(result.hits) == 4
    assert result.confirmed


@MODES
def test_judge_is_not_called_when_no_time_is_left(store: CaseStore, mode: str) -> None:
    judge = AsyncFakeJudge()
    result = run_loop(mode, store, judge, limits={"seconds": 1e-6})
    assert (result.reason, judge.requests) == ("deadline", [])
    assert (len(result.hits), result.confirmed) == (4, False)


@MODES
@JUDGES
def test_judge_is_not_called_when_no_candidate_fits_the_token_limit(
    store: CaseStore, mode: str, kind: type[FakeJudge]
) -> None:
    judge = kind()
    result = run_loop(mode, store, judge, limits={"tokens": 1})
    assert (result.reason, judge.requests) == ("tokens", [])
    assert (len(result.hits), result.confirmed) == (4, False)


def test_token_limit_uses_the_token_counts_of_the_judge(store: CaseStore) -> None:
    def script(request: JudgeRequest) -> Any:
        relevant = frozenset(case.id for case in request.candidates)
        return Verdicts(relevant, tokens={"input": 90, "output": 10})

    result = run_loop("sync", store, FakeJudge(script), limits={"tokens": 250, "rounds": 9})
    assert [round_["tokens"] for round_ in result.rounds] == [100, 100, 0]
    assert result.reason == "tokens"


def test_hits_are_sorted_by_probability_when_the_judge_gives_all_probabilities(
    store: CaseStore,
) -> None:
    def script(request: JudgeRequest) -> Any:
        probabilities = {case.id: 1 - case.nearness / 9 for case in request.candidates}
        return Verdicts(frozenset(probabilities), probabilities)

    result = run_loop("sync", store, FakeJudge(script), limits={"rounds": 1})
    probabilities = [hit["probability"] for hit in result.hits]
    assert probabilities == sorted(probabilities, reverse=True)
    by_probability = sorted(result.candidates, key=lambda case: -case["probability"])
    assert hit_ids(result) == [case["id"] for case in by_probability]
    assert hit_ids(result) != [case["id"] for case in result.candidates]
