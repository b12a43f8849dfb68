"""Settings of every test: what is built is kept in the checkout, never in the user's folders."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from casewright.planner import Reader
    from tests.support.readers import Taught

os.environ.setdefault("CASEWRIGHT_HOME", str(Path(__file__).parents[1] / ".casewright"))
os.environ.setdefault("HF_HUB_OFFLINE", "1")


@pytest.fixture(scope="session")
def taught_reader(tmp_path_factory: pytest.TempPathFactory) -> Taught:
    """A reader that was trained on toy queries; some twenty seconds, once a session."""
    from tests.support.readers import taught

    return taught(tmp_path_factory.mktemp("reader"))


@pytest.fixture(scope="session")
def untrained_reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """A reader of the same forms whose network learned nothing."""
    from tests.support.readers import quick, taught

    return taught(tmp_path_factory.mktemp("untrained"), quick(epochs=0)).reader
