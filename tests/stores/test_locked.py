from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from casewright.errors import StoreLockedError
from casewright.stores import CaseStore
from tests.stores.helpers import hold_folder, new_folder, note_schema, send_order
from tests.support.sparse import contents


def test_folder_held_by_another_process_is_refused_at_once(folder: Path) -> None:
    with hold_folder(folder, cases=3) as process:
        start = time.monotonic()
        with pytest.raises(StoreLockedError, match=str(folder)):
            CaseStore(note_schema(), folder)
        assert time.monotonic() - start < 5
        send_order(process, "close")
        assert process.stdout is not None
        assert process.stdout.readline() == "closed\n"
        with CaseStore(note_schema(), folder) as store:
            assert store.count() == 3


def test_opening_a_held_folder_waits_up_to_lock_seconds(folder: Path) -> None:
    with hold_folder(folder) as process:
        start = time.monotonic()
        with pytest.raises(StoreLockedError):
            CaseStore(note_schema(), folder, lock_seconds=0.5)
        assert 0.5 <= time.monotonic() - start < 6
        timer = threading.Timer(0.5, send_order, (process, "close"))
        timer.start()
        with CaseStore(note_schema(), folder, lock_seconds=20) as store:
            assert store.count() == 1
        timer.join()
        assert 1 <= time.monotonic() - start < 10


def test_killed_process_releases_its_folder_and_leaves_its_cases(folder: Path) -> None:
    with hold_folder(folder, cases=20) as process:
        process.kill()
        process.wait()
        with CaseStore(note_schema(), folder, lock_seconds=5) as store:
            assert store.count() == 20


def test_refused_opening_of_a_held_folder_changes_no_file(folder: Path) -> None:
    with hold_folder(folder, cases=5):
        before = contents(folder)
        with pytest.raises(StoreLockedError):
            CaseStore(note_schema(), folder)
        assert contents(folder) == before


@pytest.mark.parametrize(
    ("cases", "large"), [(8, 0), pytest.param(80, 5000, marks=pytest.mark.slow)]
)
def test_store_that_waited_for_a_folder_sees_all_cases_of_the_former_holder(
    folder: Path, cases: int, large: int
) -> None:
    with hold_folder(folder, cases=cases, large=large) as process:
        timer = threading.Timer(0.5, send_order, (process, "add and close"))
        timer.start()
        with CaseStore(note_schema(), folder, lock_seconds=20) as store:
            assert store.count() == cases + 1
        timer.join()


def test_waiting_for_one_folder_does_not_block_opening_another(tmp_path: Path) -> None:
    folder = new_folder(tmp_path / "held")
    with ThreadPoolExecutor(1) as pool:
        with hold_folder(folder):
            opening = pool.submit(lambda: CaseStore(note_schema(), folder, lock_seconds=30).close())
            time.sleep(0.2)
            with CaseStore(note_schema(), tmp_path / "free") as store:
                assert store.count() == 0
            assert not opening.done()
        opening.result()
