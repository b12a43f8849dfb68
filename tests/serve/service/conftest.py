from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.serve.service.helpers import Served, served


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Yield a shared service with two tenants, retained answers and LangServe's routes."""
    with served(
        tmp_path_factory.mktemp("service"), retain="approved", langserve=True, max_body_bytes=20_000
    ) as server:
        yield server
