from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from casewright.stores import CaseStore
from casewright.stores.engines import server_calls
from tests.stores.helpers import new_folder, note_schema
from tests.support.qdrant_server import QdrantServer, RealServer

#: The tests with ``location`` also run on the Qdrant server at this URL; see docs/scale.md.
URL, KEY = os.environ.get("CASEWRIGHT_QDRANT_URL"), os.environ.get("CASEWRIGHT_QDRANT_API_KEY", "")
LOCATION_KINDS = ["memory", "edge", "server", *(["real server"] if URL else [])]


@pytest.fixture(scope="module", autouse=True)
def _short_waits() -> Iterator[None]:
    """Shorten the wait before a request is repeated, but not a wait that a server asks for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server_calls, "MIN_WAIT", 0.02)
        yield


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a new, empty folder for a store."""
    return new_folder(tmp_path / "cases")


@pytest.fixture
def server() -> Iterator[QdrantServer]:
    """Yield a server that answers by qdrant-client's local mode, and fails on demand."""
    with QdrantServer() as qdrant_server:
        yield qdrant_server


@pytest.fixture(params=LOCATION_KINDS)
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Yield the location of an empty store: in memory, in a folder, or on a server."""
    with new_location(request.param, tmp_path / "cases") as new:
        yield new


@pytest.fixture(scope="module", params=LOCATION_KINDS)
def shared_location(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Yield the same locations as ``location``, shared by the tests of a module that only read."""
    with new_location(request.param, tmp_path_factory.mktemp("shared") / "cases") as new:
        yield new


@contextmanager
def new_location(kind: str, folder: Path) -> Iterator[str]:
    """Yield the location of an empty store of a kind in ``LOCATION_KINDS``."""
    if kind == "memory":
        yield ":memory:"
    elif kind == "edge":
        yield str(new_folder(folder))
    else:
        real_server = RealServer(URL, KEY) if URL and kind == "real server" else None
        with QdrantServer(real_server) as server:
            yield server.url


@pytest.fixture
def store(location: str) -> Iterator[CaseStore]:
    with CaseStore(note_schema(), location) as case_store:
        yield case_store
