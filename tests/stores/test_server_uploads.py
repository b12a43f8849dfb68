"""Adding to a server: parallel uploads, retries of temporary failures, the end at others."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from casewright.errors import FacetError, StoreUnavailableError
from casewright.stores import Case, CaseSchema, CaseStore, Change, Facet
from casewright.stores.engines.server_options import ServerOptions
from casewright.stores.engines.upload import SharedLock
from tests.stores.helpers import ROOT, note, note_schema, number_id
from tests.support.encoders import HashingEncoder
from tests.support.qdrant_server import RESET, QdrantServer
from tests.support.waiting import until

POINTS = "/notes/points"


def notes(count: int) -> list[Case]:
    return [note(f"question {i}", i) for i in range(count)]


def uploads(server: QdrantServer) -> list[int]:
    """Return the number of points of each upsert, including the failed upserts."""
    return [len(request.body["batch"]["ids"]) for request in server.requests_to("PUT", POINTS)]


def open_store(server: QdrantServer, **options: Any) -> CaseStore:
    return CaseStore(note_schema(), server.url, server=ServerOptions(**options))


@pytest.fixture(autouse=True)
def check_upload_threads_have_ended() -> Iterator[None]:
    yield
    names = [t.name for t in threading.enumerate() if t.name.startswith("casewright-upload")]
    assert names == []


def test_add_uploads_at_most_parallel_batches_at_once(server: QdrantServer) -> None:
    server.slow[POINTS] = 0.2
    with open_store(server, parallel=4, upload_batch=4) as store:
        start = time.monotonic()
        store.add(notes(64))
        seconds = time.monotonic() - start
        assert store.count() == 64
    assert uploads(server) == [4] * 16
    assert server.most_at_once == 4
    assert seconds < 16 * 0.2 / 2


def test_add_with_parallel_one_uploads_one_batch_at_a_time(server: QdrantServer) -> None:
    server.slow[POINTS] = 0.02
    with open_store(server, parallel=1, upload_batch=8) as store:
        store.add(notes(64))
    assert server.most_at_once == 1


class TimedEncoder(HashingEncoder):
    """Records the time of each call, and first calls ``hook`` with the number of calls."""

    def __init__(self, hook: Callable[[int], None] | None = None) -> None:
        super().__init__()
        self.hook = hook
        self.times: list[float] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.times.append(time.monotonic())
        if self.hook is not None:
            self.hook(len(self.times))
        return super().embed(texts)


def test_add_encodes_the_next_batch_during_an_upload(server: QdrantServer) -> None:
    server.slow[POINTS] = 0.5
    encoder = TimedEncoder()
    options = ServerOptions(upload_batch=256)
    with CaseStore(note_schema(encoder=encoder), server.url, server=options) as store:
        store.add(notes(3 * 256))
    assert len(encoder.times) == 3
    assert encoder.times[-1] - encoder.times[0] < 0.5


def test_add_retries_temporary_failures(server: QdrantServer) -> None:
    statuses = [408, 429, 502, 503, 504, RESET]
    with open_store(server, parallel=len(statuses), upload_batch=1) as store:
        for status in statuses:
            server.fail(status, 1, path=POINTS)
        store.add(notes(len(statuses)))
        assert store.count() == len(statuses)
    assert len(uploads(server)) == 2 * len(statuses)


def test_add_retries_as_often_as_the_retries_option(server: QdrantServer) -> None:
    with open_store(server, retries=2) as store:
        server.fail(503, 2, path=POINTS)
        store.add([note("q")])
        server.fail(503, 3, path=POINTS)
        with pytest.raises(StoreUnavailableError, match="tried 3 times"):
            store.add([note("q")])


def test_add_waits_as_long_as_retry_after(server: QdrantServer) -> None:
    with open_store(server) as store:
        server.fail(429, 1, path=POINTS, headers={"Retry-After": "1"})
        server.fail(503, 1, path=POINTS, headers={"Retry-After": "1"})
        start = time.monotonic()
        store.add([note("q")])
        assert time.monotonic() - start > 2
        assert store.count() == 1


def test_add_does_not_wait_for_a_retry_after_of_an_hour(server: QdrantServer) -> None:
    with open_store(server) as store:
        server.fail(429, path=POINTS, headers={"Retry-After": "3600"})
        start = time.monotonic()
        with pytest.raises(StoreUnavailableError, match=r"429.*3600 s"):
            store.add([note("q")])
        assert time.monotonic() - start < 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422, 500])
def test_add_does_not_retry_permanent_failures(server: QdrantServer, status: int) -> None:
    with open_store(server) as store:
        server.fail(status, path=POINTS)
        with pytest.raises(StoreUnavailableError, match=str(status)) as exc_info:
            store.add([note("q")])
    assert uploads(server) == [1]
    assert "tried" not in str(exc_info.value)


def test_error_for_a_too_large_request_names_the_option_upload_batch(server: QdrantServer) -> None:
    with open_store(server) as store:
        server.fail(413, path=POINTS)
        with pytest.raises(StoreUnavailableError, match="upload_batch"):
            store.add([note("q")])


def test_add_stops_at_the_first_permanent_failure_and_reports_stored_cases(
    server: QdrantServer,
) -> None:
    server.slow[POINTS] = 0.05
    with open_store(server, parallel=2, upload_batch=10, retries=1) as store:
        server.fail(503, path=POINTS, after=3)
        with pytest.raises(StoreUnavailableError) as exc_info:
            store.add(notes(200))
        message = str(exc_info.value)
        assert store.count() == 30
    assert "503" in message
    assert "tried 2 times" in message
    assert "3 batches with 30 cases were stored" in message
    assert len(uploads(server)) <= 3 + 2 * 2


def test_second_add_after_a_failure_stores_each_case_once(server: QdrantServer) -> None:
    with open_store(server, upload_batch=10, retries=0) as store:
        server.fail(503, 1, path=POINTS, after=2)
        with pytest.raises(StoreUnavailableError):
            store.add(notes(100))
        store.add(notes(100))
        assert store.count() == 100


def test_add_stores_the_last_case_of_an_id_across_batches(server: QdrantServer) -> None:
    cases = [note(f"question {i}", i, id=number_id(i % 4)) for i in range(16)]
    with open_store(server, parallel=4, upload_batch=2) as store:
        server.fail(503, 1, path=POINTS)  # later batches may be stored before the retry
        store.add(cases)
        assert sorted(case.solution for case in store.all()) == [12, 13, 14, 15]


def test_add_stores_the_batches_before_a_case_that_cannot_be_embedded(server: QdrantServer) -> None:
    def embed(problems: Sequence[Any]) -> NDArray[np.float32]:
        if any(problem["question"] == "question 600" for problem in problems):
            raise ValueError("unreadable")
        return np.ones((len(problems), 4), dtype=np.float32)

    facet = Facet("question", ("question",), 4, embed, embed, str, model="plain")
    schema = CaseSchema("notes", (facet,))
    server.slow[POINTS] = 0.05
    options = ServerOptions(parallel=2)
    with CaseStore(schema, server.url, server=options) as store:
        with pytest.raises(FacetError, match="unreadable"):
            store.add(notes(1000))
        assert store.count() == 512
        skipped: list[Case] = []
        added = store.add(notes(1000), on_error=lambda case, _: skipped.append(case))
        assert (len(added), len(skipped), store.count()) == (999, 1, 999)


def test_failed_upload_is_reported_even_if_a_case_cannot_be_embedded(
    server: QdrantServer,
) -> None:
    """The error of the facet would say, wrongly, that the batches before it are stored."""

    def fail_at_second_call(call: int) -> None:
        if call == 2:
            raise ValueError("unreadable")

    server.slow[POINTS] = 0.1
    schema = note_schema(encoder=TimedEncoder(fail_at_second_call))
    with CaseStore(schema, server.url, server=ServerOptions(upload_batch=256)) as store:
        server.fail(400, path=POINTS)
        with pytest.raises(StoreUnavailableError, match="0 batches with 0 cases"):
            store.add(notes(512))


def test_keyboard_interrupt_does_not_wait_for_retries(server: QdrantServer) -> None:
    def interrupt(call: int) -> None:
        if call == 3:
            time.sleep(0.2)
            raise KeyboardInterrupt

    schema = note_schema(encoder=TimedEncoder(interrupt))
    options = ServerOptions(retries=50, upload_batch=256)
    with CaseStore(schema, server.url, server=options) as store:
        server.fail(503, path=POINTS, after=1)
        start = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            store.add(notes(1000))
        assert time.monotonic() - start < 5


SCRIPT = """
import sys
from casewright.stores import CaseStore
from tests.stores.helpers import note, note_schema

with CaseStore(note_schema(), sys.argv[1]) as store:
    print("ready", flush=True)
    store.add([note(f"question {i}", i) for i in range(8000)])
"""


def test_process_interrupted_during_an_upload_ends_within_ten_seconds(server: QdrantServer) -> None:
    server.slow[POINTS] = 0.2
    command = [sys.executable, "-c", SCRIPT, server.url]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # The background jobs of a shell, and their children, ignore SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        until(lambda: len(uploads(server)) >= 4)
        process.send_signal(signal.SIGINT)
        start = time.monotonic()
        _, errors = process.communicate(timeout=30)
    assert time.monotonic() - start < 10
    assert process.returncode != 0
    assert errors.rstrip().endswith("KeyboardInterrupt")


def test_progress_counts_cases_acknowledged_by_the_server(
    server: QdrantServer, capfd: pytest.CaptureFixture[str]
) -> None:
    with open_store(server, upload_batch=10, parallel=2, retries=0) as store:
        store.add(notes(100), progress=True)
        assert "100/100" in capfd.readouterr().err
        server.fail(400, path=POINTS, after=3)
        with pytest.raises(StoreUnavailableError):
            store.add(notes(100), progress=True)
        assert "30/100" in capfd.readouterr().err


def test_update_sends_requests_of_at_most_upload_batch_cases(server: QdrantServer) -> None:
    with open_store(server, upload_batch=8) as store:
        ids = store.add(notes(20))
        server.fail(503, 1, path=POINTS)
        store.update({id_: Change(quality=0.5) for id_ in ids})
        assert {case.quality for case in store.all()} == {0.5}
    assert max(uploads(server)) == 8


def test_retain_returns_while_a_long_add_continues(server: QdrantServer) -> None:
    """A write that depends on a read waits for the uploads in flight, not for the whole add."""
    server.slow[POINTS] = 0.1
    with open_store(server, parallel=2, upload_batch=4) as store:
        adding = threading.Thread(target=store.add, args=(notes(120),))
        adding.start()
        until(lambda: uploads(server))
        outcome = store.retain(note("kept meanwhile", "solved")).outcome
        assert adding.is_alive()
        adding.join()
        assert outcome == "added"
        assert store.count() == 121


def test_shared_lock_has_several_sharers_or_one_holder() -> None:
    lock = SharedLock()
    sharers, most_sharers, holders, conflicts = 0, 0, 0, []
    guard = threading.Lock()

    def share() -> None:
        nonlocal sharers, most_sharers
        for _ in range(50):
            with lock.shared():
                with guard:
                    sharers += 1
                    most_sharers = max(most_sharers, sharers)
                    conflicts.append(holders)
                time.sleep(0.0005)
                with guard:
                    sharers -= 1

    def hold() -> None:
        nonlocal holders
        for _ in range(20):
            with lock, lock:
                holders += 1
                conflicts.append(sharers + holders - 1)
                time.sleep(0.0005)
                holders -= 1

    threads = [threading.Thread(target=f) for f in (share, share, share, hold, hold)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert most_sharers > 1
    assert conflicts == [0] * 190
