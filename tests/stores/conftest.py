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

#: A Qdrant server on which the tests with ``place`` also run, if it is set; see docs/scale.md.
URL, KEY = os.environ.get("CASEWRIGHT_QDRANT_URL"), os.environ.get("CASEWRIGHT_QDRANT_API_KEY", "")
PLACES = ["memory", "edge", "server", *(["real server"] if URL else [])]


@pytest.fixture(scope="module", autouse=True)
def _short_waits() -> Iterator[None]:
    """Shorten the wait before a request is repeated; a wait that a server asks for stays."""
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
    with QdrantServer() as running:
        yield running


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Yield the location of an empty store: in memory, in a folder, and on a server."""
    with new_place(request.param, tmp_path / "cases") as location:
        yield location


@pytest.fixture(scope="module", params=PLACES)
def shared_place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Yield the same locations as ``place``, shared by the tests of a module that only read."""
    with new_place(request.param, tmp_path_factory.mktemp("shared") / "cases") as location:
        yield location


@contextmanager
def new_place(kind: str, folder: Path) -> Iterator[str]:
    """Yield the location of an empty store of a kind in ``PLACES``."""
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
