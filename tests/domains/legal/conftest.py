from __future__ import annotations

import pytest


@pytest.fixture(scope="session", autouse=True)
def _shipped(shipped_cases: None) -> None:
    """Use the shipped cases in every test of this folder."""
