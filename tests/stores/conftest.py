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

#: A real server, where there is one to run the tests of ``place`` against too; see docs/scale.md.
URL, KEY = os.environ.get("CASEWRIGHT_QDRANT_URL"), os.environ.get("CASEWRIGHT_QDRANT_API_KEY", "")
PLACES = ["memory", "edge", "server", *(["real server"] if URL else [])]


@pytest.fixture(scope="module", autouse=True)
def _short_waits() -> Iterator[None]:
    """A client that tries again does so soon, but for what a server itself asks for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server_calls, "MIN_WAIT", 0.02)
        yield


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a store, and nothing in it yet."""
    return new_folder(tmp_path / "cases")


@pytest.fixture
def server() -> Iterator[QdrantServer]:
    """A server whose answers come from local mode, and that can be told to fail."""
    with QdrantServer() as started:
        yield started


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Each kind of place that cases can be in, with nothing in it yet."""
    with new_place(request.param, tmp_path / "cases") as location:
        yield location


@pytest.fixture(scope="module", params=PLACES)
def shared_place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Each kind of place, once for all tests of a module that only read."""
    with new_place(request.param, tmp_path_factory.mktemp("shared") / "cases") as location:
        yield location


@contextmanager
def new_place(kind: str, folder: Path) -> Iterator[str]:
    if kind == "memory":
        yield ":memory:"
    elif kind == "edge":
        yield str(new_folder(folder))
    else:
        real = RealServer(URL, KEY) if URL and kind == "real server" else None
        with QdrantServer(real) as server:
            yield server.url


@pytest.fixture
def store(place: str) -> Iterator[CaseStore]:
    with CaseStore(note_schema(), place) as opened:
        yield opened
