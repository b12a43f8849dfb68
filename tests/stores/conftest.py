from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from casewright.stores import CaseStore
from tests.stores.helpers import note_schema


@pytest.fixture(params=["memory", "folder"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return ":memory:" if request.param == "memory" else str(tmp_path / "cases")


@pytest.fixture
def store(place: str) -> Iterator[CaseStore]:
    with CaseStore(note_schema(), place) as opened:
        yield opened
