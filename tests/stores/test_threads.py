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


def test_four_writing_and_two_reading_threads_lose_no_case(location: str) -> None:
    with CaseStore(note_schema(), location) as store:
        writers_ended = threading.Event()

        def write(writer: int) -> list[str]:
            ids: list[str] = []
            for turn in range(10):
                cases = [note(f"question {writer} {turn} {i}", [writer, turn, i]) for i in range(5)]
                ids += store.add(cases)
            return ids

        def read() -> int:
            rounds = 0
            while not writers_ended.is_set():
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
                writers_ended.set()
            assert all(reader.result() > 0 for reader in readers)
        assert len(set(ids)) == 200
        assert {case.id for case in store.all()} == set(ids)
        assert store.count() == 200
    if location != ":memory:":
        with CaseStore(note_schema(), location) as reopened:
            assert {case.id for case in reopened.all()} == set(ids)


def test_concurrent_first_adds_create_one_collection(location: str) -> None:
    with CaseStore(note_schema(), location) as store:
        start = threading.Barrier(6)

        def write(writer: int) -> None:
            start.wait()
            store.add([note(f"question {writer}", writer, quality=writer / 6)])

        with ThreadPoolExecutor(6) as pool:
            list(pool.map(write, range(6)))
        assert sorted(case.solution for case in store.all()) == list(range(6))


def test_adding_and_deleting_threads_keep_cases_that_were_not_deleted(location: str) -> None:
    with CaseStore(note_schema(), location) as store:
        ids = store.add([note(f"kept {i}", i) for i in range(20)])

        def add_and_delete(worker: int) -> None:
            for turn in range(10):
                store.delete(store.add([note(f"gone {worker} {turn}", [worker, turn])]))

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(add_and_delete, range(4)))
        assert {case.id for case in store.all()} == set(ids)


def test_retain_and_select_work_while_another_thread_clears(location: str) -> None:
    with CaseStore(note_schema(), location) as store, store.for_tenant("acme") as acme:
        stop = threading.Event()

        def repeat(work: Callable[[int], object]) -> int:
            turns = 0
            while not stop.is_set():
                work(turns)
                turns += 1
            return turns

        def clear(turn: int) -> None:
            stop.wait(0.02)
            (store if turn % 2 else acme).clear()

        def select(turn: int) -> None:
            hits = store.select("question", 3, lambda_d=0.2, candidates=1).hits
            assert len({hit.case.id for hit in hits}) == len(hits)

        def retain(turn: int) -> None:
            for target in (store, acme):
                assert target.retain(note(f"question {turn}", turn)).outcome == "added"

        with ThreadPoolExecutor(3) as pool:
            futures = [pool.submit(repeat, work) for work in (clear, select, retain)]
            time.sleep(0.4)
            stop.set()
            assert all(future.result() > 0 for future in futures)
        store.retain(note("last", "last"))
        assert store.search({"question": "last"}, 1)[0].case.solution == "last"


class _CallbackEncoder(HashingEncoder):
    """Calls ``before_second`` before it embeds the second batch of a long add."""

    def __init__(self) -> None:
        super().__init__()
        self.before_second: Callable[[], object] = lambda: None

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if len(texts) > 1 and texts[0] == "question 256":
            self.before_second()
        return super().embed(texts)


def test_add_into_a_recreated_collection_stores_correct_qualities(location: str) -> None:
    encoder = _CallbackEncoder()
    with CaseStore(note_schema(encoder=encoder), location) as store:

        def recreate_collection() -> None:
            store.clear()
            store.add([note("new", -1, quality=0.5), note("newer", -2, quality=0.6)])

        encoder.before_second = recreate_collection
        store.add([note(f"question {i}", i, quality=i % 2) for i in range(300)])
        hits = store.search("zzz", 999, lambda_b=0.0)
        assert len(hits) == 2 + 300 - 256
        for hit in hits:
            assert hit.score == pytest.approx(hit.case.quality, abs=1e-6)
