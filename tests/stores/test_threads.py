from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from casewright.stores import CaseStore
from tests.stores.helpers import note, note_schema


def test_four_writers_and_two_readers_lose_nothing(place: str) -> None:
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


def test_first_adds_at_the_same_moment_make_one_collection(place: str) -> None:
    with CaseStore(note_schema(), place) as store:
        start = threading.Barrier(6)

        def write(writer: int) -> None:
            start.wait()
            store.add([note(f"question {writer}", writer, quality=writer / 6)])

        with ThreadPoolExecutor(6) as pool:
            list(pool.map(write, range(6)))
        assert sorted(case.solution for case in store.all()) == list(range(6))


def test_one_case_retained_by_many_threads_is_kept_once(place: str) -> None:
    with CaseStore(note_schema(), place) as store, ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda _: store.retain(note("how tall", "12 m")), range(16)))
        assert {retained.outcome for retained in told} <= {"added", "unchanged"}
        assert len({retained.id for retained in told}) == 1
        assert store.count() == 1


@pytest.mark.parametrize("rounds", [10])
def test_adding_and_deleting_threads_leave_what_was_not_deleted(place: str, rounds: int) -> None:
    with CaseStore(note_schema(), place) as store:
        keep = store.add([note(f"kept {i}", i) for i in range(20)])

        def churn(worker: int) -> None:
            for turn in range(rounds):
                store.delete(store.add([note(f"gone {worker} {turn}", [worker, turn])]))

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(churn, range(4)))
        assert {case.id for case in store.all()} == set(keep)
