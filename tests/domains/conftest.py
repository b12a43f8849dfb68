from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from casewright.domains import OpenDomain, find_domain
from casewright.stores import default_encoder


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenDomain]:
    """Yield the shopping domain, newly built in a temporary folder."""
    folder: Path = tmp_path_factory.mktemp("shop")
    opened = find_domain("shopping").open(folder, default_encoder(), False)
    yield opened
    opened.close()
