"""Whatever a judge does, the loop ends within its bounds and returns what it has."""

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
    Awaited,
    Scripted,
    all_relevant,
    ids,
    loop,
    no_verdicts,
    note_store,
    total,
)
from tests.support.examples import at_most

Script = Callable[[JudgeRequest], Any]
NAN = float("nan")
STRATEGIES = [RocchioStrategy(), TextStrategy(), SentenceStrategy()]
MODES = pytest.mark.parametrize("mode", ["sync", "async"])
JUDGES = pytest.mark.parametrize("kind", [Scripted, Awaited], ids=["blocking", "awaitable"])


@pytest.fixture(scope="module")
def store() -> Iterator[CaseStore]:
    with note_store() as opened:
        yield opened


class Odd(Verdicts):
    """Raises where it is read."""

    @property
    def items(self) -> Any:
        raise LookupError

    def __str__(self) -> str:
        raise LookupError


GARBAGE: list[Script] = [
    lambda request: None,
    lambda request: "all of them",
    lambda request: {one.id: True for one in request.candidates},
    lambda request: Verdicts(None),  # type: ignore[arg-type]
    lambda request: Verdicts(frozenset({"no such id"}), {"no such id": 0.5}),
    lambda request: Verdicts(frozenset({1, None}), {}, {"input": 2**80}, "\ud800"),  # type: ignore[arg-type]
    lambda request: Verdicts(
        frozenset(one.id for one in request.relevant), {one.id: NAN for one in request.candidates}
    ),
    lambda request: Verdicts(frozenset(), {"a": "b"}),  # type: ignore[dict-item]
    lambda request: Verdicts([[]]),  # type: ignore[arg-type]
    lambda request: Verdicts(frozenset(), {}, {"input": NAN}),  # type: ignore[dict-item]
    lambda request: Verdicts(frozenset(), {}, {}, Odd(frozenset())),  # type: ignore[arg-type]
    lambda request: Verdicts(frozenset(), Odd(frozenset())),  # type: ignore[arg-type]
    lambda request: Verdicts(frozenset(), {}, {"input": -5, "output": -7}),
]


def random_script(seed: int) -> Script:
    rng = random.Random(seed)

    def script(request: JudgeRequest) -> Any:
        some = [one.id for one in (*request.candidates, *request.relevant) if rng.random() < 0.4]
        return Verdicts(frozenset(some), {id_: rng.random() for id_ in some})

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
    kind=st.sampled_from([Scripted, Awaited]),
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
    kind: type[Scripted],
    scripts: list[Script],
    strategy: Any,
    **limits: int,
) -> None:
    judge = kind(answer_in_turn([*scripts, *[scripts[-1]] * 10]))
    result = loop(mode, store, judge, strategy, limits=limits)
    judged = [one for one in result.rounds if one["judged"]]

    assert len(result.rounds) <= limits["rounds"]
    assert len(result.candidates) <= limits["candidates"]
    # Estimated tokens stay within the bound; those that a judge tells of are spent already.
    assert result.tokens <= limits["tokens"] or result.rounds[-1]["tokens"] == MAX_TOKENS
    # One call a round, of what was never judged, with what is relevant as context.
    assert len(judge.asked) == len(judged)
    assert len(judge.ids) == len(set(judge.ids)) == result.judged
    for number, request in enumerate(judge.asked, 1):
        assert {one.id for one in request.relevant} == {
            one["id"] for one in result.candidates if one["relevant"] and one["round"] < number
        }
    # It grows strictly until the last round.
    grown = total(result)[:-1]
    assert all(one < other for one, other in zip([0, *grown], grown, strict=False))
    assert right_reason(result, limits) == result.reason
    relevant = {one["id"] for one in result.candidates if one["relevant"]}
    assert result.confirmed == bool(relevant)
    if relevant:
        assert set(ids(result)) == relevant
    else:
        best = store.search(QUESTION, min(limits["first"], limits["candidates"]))
        assert ids(result) == [hit.case.id for hit in best]


def right_reason(result: FeedbackResult, limits: dict[str, int]) -> str:
    """Why a loop must have ended whose judge never failed, by its trace."""
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
@pytest.mark.parametrize("at", range(len(GARBAGE)))
def test_nonsensical_verdicts_mark_no_candidate_as_relevant(
    store: CaseStore, mode: str, at: int
) -> None:
    for turns in ([], [all_relevant]):
        result = loop(mode, store, Scripted(answer_in_turn([*turns, GARBAGE[at]])))
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
    store: CaseStore, mode: str, kind: type[Scripted], error: BaseException
) -> None:
    for rounds_before in (0, 1):
        judge = kind()

        def script(request: JudgeRequest, judge: Scripted = judge, n: int = rounds_before) -> Any:
            if len(judge.asked) > n:
                raise error
            return all_relevant(request)

        judge.script = script
        result = loop(mode, store, judge)
        assert result.reason == "judge_failed"
        assert result.rounds[-1]["note"].startswith("The judge failed: ")
        assert len(result.hits) == 4
        assert result.confirmed == bool(rounds_before)
        assert [one["relevant"] for one in result.candidates[4 * rounds_before :]] == (
            [None] * (len(result.candidates) - 4 * rounds_before)
        )


@MODES
def test_failed_verdicts_end_the_loop_as_an_exception_does(store: CaseStore, mode: str) -> None:
    def script(request: JudgeRequest) -> Any:
        if request.relevant:
            known = frozenset(one.id for one in request.candidates)
            return Verdicts(known, {}, {"input": 7}, "No quota is left.", failed=True)
        return all_relevant(request)

    result = loop(mode, store, Scripted(script))
    assert result.reason == "judge_failed"
    assert result.rounds[-1]["note"] == "The judge failed: No quota is left."
    assert (result.rounds[-1]["judged"], result.rounds[-1]["tokens"]) == (0, 7)
    assert ids(result) == [one["id"] for one in result.candidates if one["round"] == 1]


async def swallows(request: JudgeRequest) -> Verdicts:
    ends = time.perf_counter() + 5
    while time.perf_counter() < ends:
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            continue
    return Verdicts(frozenset())


def hangs(request: JudgeRequest) -> Verdicts:
    time.sleep(1.5)
    return all_relevant(request)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("mode", "judge"),
    [
        ("sync", Scripted(hangs)),
        ("async", Scripted(hangs)),
        ("async", Awaited(lambda request: asyncio.sleep(5))),
        ("async", Awaited(swallows)),
    ],
    ids=["sync", "async thread", "async sleep", "async swallow"],
)
def test_hanging_judge_ends_the_loop_at_its_deadline(
    store: CaseStore, mode: str, judge: Scripted
) -> None:
    inner = judge.script

    def script(request: JudgeRequest) -> Any:
        return inner(request) if request.relevant else all_relevant(request)

    judge.script = script
    started = time.perf_counter()
    result = loop(mode, store, judge, limits={"seconds": 0.4})
    assert time.perf_counter() - started < 1.4
    assert result.reason == "deadline"
    assert len(result.hits) == 4
    assert result.confirmed


@MODES
def test_judge_is_not_called_when_no_time_is_left(store: CaseStore, mode: str) -> None:
    judge = Awaited()
    result = loop(mode, store, judge, limits={"seconds": 1e-6})
    assert (result.reason, judge.asked) == ("deadline", [])
    assert (len(result.hits), result.confirmed) == (4, False)


@MODES
@JUDGES
def test_judge_is_not_called_when_no_candidate_fits_the_token_limit(
    store: CaseStore, mode: str, kind: type[Scripted]
) -> None:
    judge = kind()
    result = loop(mode, store, judge, limits={"tokens": 1})
    assert (result.reason, judge.asked) == ("tokens", [])
    assert (len(result.hits), result.confirmed) == (4, False)


def test_token_limit_uses_the_token_counts_of_the_judge(store: CaseStore) -> None:
    def script(request: JudgeRequest) -> Any:
        known = frozenset(one.id for one in request.candidates)
        return Verdicts(known, tokens={"input": 90, "output": 10})

    result = loop("sync", store, Scripted(script), limits={"tokens": 250, "rounds": 9})
    assert [one["tokens"] for one in result.rounds] == [100, 100, 0]
    assert result.reason == "tokens"


def test_hits_are_sorted_by_probability_when_the_judge_gives_all_probabilities(
    store: CaseStore,
) -> None:
    def script(request: JudgeRequest) -> Any:
        known = {one.id: 1 - one.nearness / 9 for one in request.candidates}
        return Verdicts(frozenset(known), known)

    result = loop("sync", store, Scripted(script), limits={"rounds": 1})
    told = [hit["probability"] for hit in result.hits]
    assert told == sorted(told, reverse=True)
    by_probability = sorted(result.candidates, key=lambda one: -one["probability"])
    assert ids(result) == [one["id"] for one in by_probability]
    assert ids(result) != [one["id"] for one in result.candidates]
