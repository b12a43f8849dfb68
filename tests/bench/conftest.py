from __future__ import annotations

from pathlib import Path

import pytest

from tests.serve.helpers import built_home


@pytest.fixture(scope="session")
def home() -> Path:
    """Return the folder ``CASEWRIGHT_HOME`` with built stores, which tests must not change."""
    return built_home()
