from __future__ import annotations

from pathlib import Path

import pytest

from tests.serve.helpers import built_home, copied_home


@pytest.fixture(scope="session")
def home() -> Path:
    """A home with built stores; tests leave them as they are."""
    return built_home()


@pytest.fixture
def own_home(home: Path, tmp_path: Path) -> Path:
    """A home with built stores that this test may break."""
    return copied_home(home, tmp_path / "own")
