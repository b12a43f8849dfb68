from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from casewright.stores import CaseStore
from casewright.stores.embedded import ENGINES
from tests.stores.helpers import new_folder, note_schema


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def folder(engine: str, tmp_path: Path) -> Path:
    """A new folder of each engine that runs in this process."""
    return new_folder(tmp_path / "cases", engine)


@pytest.fixture(params=["memory", *ENGINES])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "memory":
        return ":memory:"
    return str(new_folder(tmp_path / "cases", request.param))


@pytest.fixture
def store(place: str) -> Iterator[CaseStore]:
    with CaseStore(note_schema(), place) as opened:
        yield opened
