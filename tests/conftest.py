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
# Tests run beside each other: torch with a thread a core in each of them would be far slower.
os.environ.setdefault("OMP_NUM_THREADS", "1")

#: Rooms whose tests share what takes long, which one process makes once: a home with built stores,
#: a trained reader, the shop's stores.
SHARING = {
    "bench": "home",
    "serve": "home",
    "finetune": "reader",
    "planner": "reader",
    "domains": "shop",
}


def pytest_configure(config: pytest.Config) -> None:
    """Prepare the encoder before any test, and any process of tests: it is done once, and told."""
    if not hasattr(config, "workerinput"):
        from casewright.stores import default_encoder

        default_encoder().embed(["a text that takes the encoder"])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep together, where tests run in several processes, those that share what takes long."""
    root = Path(__file__).parent
    for item in items:
        room, *_ = item.path.relative_to(root).parts
        item.add_marker(pytest.mark.xdist_group(SHARING.get(room, str(item.path))))


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
