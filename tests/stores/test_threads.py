from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.typing import NDArray

from casewright.stores import CaseStore
from tests.stores.helpers import note, note_schema
from tests.support.encoders import HashingEncoder


def test_four_writing_and_two_reading_threads_lose_no_case(place: str) -> None:
    with CaseStore(note_schema(), place) as store:
        done = threading.Event()

        def write(writer: int) -> list[str]:
            ids: list[str] = []
            for turn in range(10):
                cases = [note(f"question {writer} {turn} {i}", [writer, turn, i]) for i in range(5)]
                ids += store.add(cases)
            return ids

        def read() -> int:
            rounds = 0
            while not done.is_set():
                hits = store.search("question", 20)
                assert len({hit.case.id for hit in hits}) == len(hits)
                assert len(store.all()) <= 200
                rounds += 1
            return rounds

        with ThreadPoolExecutor(6) as pool:
            readers = [pool.submit(read) for _ in range(2)]
            writers = [pool.submit(write, writer) for writer in range(4)]
            try:
                ids = [case_id for writer in writers for case_id in writer.result()]
            finally:
                done.set()
            assert all(reader.result() > 0 for reader in readers)
        assert len(set(ids)) == 200
        assert {case.id for case in store.all()} == set(ids)
        assert store.count() == 200
    if place != ":memory:":
        with CaseStore(note_schema(), place) as again:
            assert {case.id for case in again.all()} == set(ids)


def test_concurrent_first_adds_create_one_collection(place: str) -> None:
    with CaseStore(note_schema(), place) as store:
        start = threading.Barrier(6)

        def write(writer: int) -> None:
            start.wait()
            store.add([note(f"question {writer}", writer, quality=writer / 6)])

        with ThreadPoolExecutor(6) as pool:
            list(pool.map(write, range(6)))
        assert sorted(case.solution for case in store.all()) == list(range(6))


def test_one_case_retained_by_many_threads_is_stored_once(place: str) -> None:
    with CaseStore(note_schema(), place) as store, ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda _: store.retain(note("how tall", "12 m")), range(16)))
        assert {retained.outcome for retained in told} <= {"added", "unchanged"}
        assert len({retained.id for retained in told}) == 1
        assert store.count() == 1


@pytest.mark.parametrize("rounds", [10])
def test_adding_and_deleting_threads_keep_cases_that_were_not_deleted(
    place: str, rounds: int
) -> None:
    with CaseStore(note_schema(), place) as store:
        keep = store.add([note(f"kept {i}", i) for i in range(20)])

        def churn(worker: int) -> None:
            for turn in range(rounds):
                store.delete(store.add([note(f"gone {worker} {turn}", [worker, turn])]))

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(churn, range(4)))
        assert {case.id for case in store.all()} == set(keep)


def test_retain_and_select_work_while_another_thread_clears(place: str) -> None:
    with CaseStore(note_schema(), place) as store, store.for_tenant("acme") as acme:
        done = threading.Event()

        def again(work: Callable[[int], object]) -> int:
            turns = 0
            while not done.is_set():
                work(turns)
                turns += 1
            return turns

        def clear(turn: int) -> None:
            done.wait(0.02)
            (store if turn % 2 else acme).clear()

        def select(turn: int) -> None:
            hits = store.select("question", 3, lambda_d=0.2, candidates=1).hits
            assert len({hit.case.id for hit in hits}) == len(hits)

        def retain(turn: int) -> None:
            for bound in (store, acme):
                assert bound.retain(note(f"question {turn}", turn)).outcome == "added"

        with ThreadPoolExecutor(3) as pool:
            working = [pool.submit(again, work) for work in (clear, select, retain)]
            time.sleep(0.4)
            done.set()
            assert all(one.result() > 0 for one in working)
        store.retain(note("last", "last"))
        assert store.search({"question": "last"}, 1)[0].case.solution == "last"


class _Interrupting(HashingEncoder):
    """Calls back before the second batch of a long add is embedded."""

    def __init__(self) -> None:
        super().__init__()
        self.before_second: Callable[[], object] = lambda: None

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if len(texts) > 1 and texts[0] == "question 256":
            self.before_second()
        return super().embed(texts)


def test_add_into_a_recreated_collection_stores_correct_qualities(
    place: str,
) -> None:
    encoder = _Interrupting()
    with CaseStore(note_schema(encoder=encoder), place) as store:

        def make_anew() -> None:
            store.clear()
            store.add([note("new", -1, quality=0.5), note("newer", -2, quality=0.6)])

        encoder.before_second = make_anew
        store.add([note(f"question {i}", i, quality=i % 2) for i in range(300)])
        hits = store.search("zzz", 999, lambda_b=0.0)
        assert len(hits) == 2 + 300 - 256
        for hit in hits:
            assert hit.score == pytest.approx(hit.case.quality, abs=1e-6)
