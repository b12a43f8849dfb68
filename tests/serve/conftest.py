from __future__ import annotations

from pathlib import Path

import pytest

from tests.serve.helpers import built_home, copied_home


@pytest.fixture(scope="session")
def home() -> Path:
    """Return the folder ``CASEWRIGHT_HOME`` with built stores, which tests must not change."""
    return built_home()


@pytest.fixture
def own_home(home: Path, tmp_path: Path) -> Path:
    """Return a copy of ``home`` that the test may change."""
    return copied_home(home, tmp_path / "own")
