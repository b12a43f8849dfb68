from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from casewright.domains import OpenDomain, find_domain
from casewright.domains.legal.data import ALQA, CONTEXT, EXTRACTOR
from casewright.stores import default_encoder


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenDomain]:
    """Yield the shopping domain, newly built in a temporary folder."""
    folder: Path = tmp_path_factory.mktemp("shop")
    opened = find_domain("shopping").open(folder, default_encoder(), False)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def shipped_cases() -> Iterator[None]:
    """Use the shipped cases, even if the environment names other files."""
    with pytest.MonkeyPatch.context() as patch:
        for name in (ALQA, CONTEXT, EXTRACTOR):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(scope="session")
def legal(tmp_path_factory: pytest.TempPathFactory, shipped_cases: None) -> Iterator[OpenDomain]:
    """Yield the legal domain, newly built in a temporary folder."""
    opened = find_domain("legal").open(tmp_path_factory.mktemp("legal"), default_encoder(), False)
    yield opened
    opened.close()
