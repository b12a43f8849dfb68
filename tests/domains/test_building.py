from __future__ import annotations

import json
import stat
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from casewright.domains import find_domain
from casewright.domains.build import digest, open_built
from casewright.domains.store_opening import is_unopened
from casewright.errors import StoreError
from casewright.stores import Case
from tests.stores.helpers import note, note_schema
from tests.support.encoders import HashingEncoder


class Source:
    """The cases of a small domain, with the number of times that they were read."""

    def __init__(self, *questions: str) -> None:
        self.questions = questions
        self.reads = 0

    def __call__(self) -> Sequence[Case]:
        self.reads += 1
        return [note(question, metadata={"key": question}) for question in self.questions]


def contents(folder: Path, mark: str, **parts: Source) -> dict[str, set[str]]:
    """Open a domain, close it, and return the questions that its stores held."""
    built = {name: (note_schema(name), source) for name, source in parts.items()}
    stores = open_built(folder, "small", mark, built)
    texts = {n: {str(c.problem["question"]) for c in store.all()} for n, store in stores.items()}
    for store in stores.values():
        store.close()
    return texts


def test_stores_are_built_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    first, second = Source("a", "b"), Source("c")
    for _ in range(3):
        assert contents(tmp_path, "1", one=first, two=second) == {"one": {"a", "b"}, "two": {"c"}}
    assert (first.reads, second.reads) == (1, 1)
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("Building the small stores") == 1


def test_the_shops_plan_cases_are_built_when_they_are_first_read(tmp_path: Path) -> None:
    shop = find_domain("shopping")
    for _ in range(2):
        opened = shop.open(tmp_path, HashingEncoder(16), False)
        assert is_unopened(opened.plan_cases)
        assert not is_unopened(opened.stores["help"])
        opened.close()
    assert not (tmp_path / "plans").exists()
    opened = shop.open(tmp_path, HashingEncoder(16), False)
    assert opened.plan_cases.count() == len(shop.queries())
    assert not is_unopened(opened.plan_cases)
    opened.close()
    assert (tmp_path / "plans").exists()


def test_long_build_reports_how_many_cases_are_done(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    class Slow(HashingEncoder):
        def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
            time.sleep(1.1)
            return super().embed(texts)

    schema = note_schema("one", Slow(16))
    source = Source(*(f"question {n}" for n in range(600)))
    open_built(tmp_path, "small", "1", {"one": (schema, source)})["one"].close()
    out, err = capfd.readouterr()
    assert out == ""
    assert "Building the small stores: 512 of 600 cases (85 %)" in err


def test_changed_data_causes_a_new_build_without_old_cases(tmp_path: Path) -> None:
    contents(tmp_path, "1", one=Source("a", "b"), two=Source("c"))
    assert contents(tmp_path, "2", one=Source("b2"), two=Source()) == {"one": {"b2"}, "two": set()}
    assert contents(tmp_path, "2", one=Source("never"), two=Source())["one"] == {"b2"}


def test_interrupted_build_is_done_again(tmp_path: Path) -> None:
    class Interrupted(Source):
        def __call__(self) -> Sequence[Case]:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        contents(tmp_path, "1", one=Source("a", "b"), two=Interrupted("c"))
    assert not (tmp_path / "built.json").exists()
    expected = {"one": {"a", "b"}, "two": {"c"}}
    assert contents(tmp_path, "1", one=Source("a", "b"), two=Source("c")) == expected


def test_cases_without_a_build_mark_are_replaced_by_a_new_build(tmp_path: Path) -> None:
    contents(tmp_path, "1", one=Source("a", "old"))
    (tmp_path / "built.json").unlink()
    assert contents(tmp_path, "1", one=Source("a", "b", "c", "d"))["one"] == {"a", "b", "c", "d"}


@pytest.mark.parametrize("mark", ["", "{", "[]", "null", '{"digest": 1}', '{"other": "1"}', "\xff"])
def test_unreadable_build_mark_causes_a_new_build(tmp_path: Path, mark: str) -> None:
    contents(tmp_path, "wanted", one=Source("a"))
    (tmp_path / "built.json").write_text(mark, encoding="latin-1")
    source = Source("a")
    contents(tmp_path, "wanted", one=source)
    assert source.reads == 1
    assert json.loads((tmp_path / "built.json").read_text()) == {"digest": "wanted"}


def test_digest_follows_data_and_layout(tmp_path: Path) -> None:
    file = tmp_path / "data.jsonl"
    file.write_text("{}\n")
    before = digest([file], [note_schema()])
    assert digest([file], [note_schema()]) == before
    assert digest([file], [note_schema("other")]) != before
    assert digest([file], [note_schema(encoder=HashingEncoder(64))]) != before
    file.write_text('{"a": 1}\n')
    assert digest([file], [note_schema()]) != before


def test_stores_of_another_encoder_are_built_anew(tmp_path: Path) -> None:
    for dimension in (16, 24):
        schema = note_schema("one", HashingEncoder(dimension))
        stores = open_built(
            tmp_path, "small", digest([], [schema]), {"one": (schema, Source("refund", "parcel"))}
        )
        assert stores["one"].count() == 2
        hit = stores["one"].search("refund", 1)[0]
        assert hit.case.problem["question"] == "refund"
        stores["one"].close()


def test_closed_domain_releases_its_folder(tmp_path: Path) -> None:
    for _ in range(2):
        assert contents(tmp_path, "1", one=Source("a"))["one"] == {"a"}
    (tmp_path / "cases").rename(tmp_path / "moved")
    assert stat.S_ISDIR((tmp_path / "moved").stat().st_mode)


def test_folder_that_is_a_file_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(StoreError, match="CASEWRIGHT_HOME"):
        contents(tmp_path / "taken", "1", one=Source("a"))
