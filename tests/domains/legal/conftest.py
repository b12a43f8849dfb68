from __future__ import annotations

import pytest


@pytest.fixture(scope="session", autouse=True)
def _shipped(shipped_cases: None) -> None:
    """Every test here is of the cases that ship."""
