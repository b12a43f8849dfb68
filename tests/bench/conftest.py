from __future__ import annotations

from pathlib import Path

import pytest

from tests.serve.helpers import built_home


@pytest.fixture(scope="session")
def home() -> Path:
    """A home with built stores; tests leave them as they are."""
    return built_home()
