"""Graphs in the cache are compared with their checksums, and made again once where they differ."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from casewright.stores.encoders.onnx_cache import made_once

NAMES = ("one.onnx", "two.onnx")


class Maker:
    """Writes two files, and counts how often."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.times = 0

    def __call__(self) -> None:
        self.times += 1
        for name in NAMES:
            (self.folder / name).write_bytes(name.encode() * 1000)

    def needed(self) -> int:
        """Say how often the files were made until now, once they are needed."""
        made_once(self.folder, NAMES, "two graphs", self)
        assert [len((self.folder / name).read_bytes()) for name in NAMES] == [8000, 8000]
        return self.times


@pytest.fixture
def maker(tmp_path: Path) -> Maker:
    return Maker(tmp_path / "cache")


def flip(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1] + b"?")


@pytest.mark.parametrize(
    "damage", [flip, lambda file: os.truncate(file, 4000), Path.unlink], ids=["bit", "cut", "gone"]
)
def test_damaged_graph_is_made_again_once_and_told(
    maker: Maker, damage: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    assert (maker.needed(), maker.needed()) == (1, 1)
    damage(maker.folder / "two.onnx")
    assert (maker.needed(), maker.needed()) == (2, 2)
    told = capsys.readouterr().err
    assert told.count("once: exporting") == 1
    assert told.count("again, since two.onnx is damaged or missing: exporting") == 1


def test_damaged_record_of_checksums_has_the_graphs_made_again(maker: Maker) -> None:
    maker.needed()
    (record,) = maker.folder.glob("*.json")
    record.write_text("{")
    assert (maker.needed(), maker.needed()) == (2, 2)
