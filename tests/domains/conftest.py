from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from casewright.domains import OpenDomain, find_domain
from casewright.domains.legal.data import ALQA, CONTEXT, EXTRACTOR
from casewright.stores import default_encoder


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenDomain]:
    """The shopping domain, freshly built in a folder of its own."""
    folder: Path = tmp_path_factory.mktemp("shop")
    opened = find_domain("shopping").open(folder, default_encoder(), False)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def shipped_cases() -> Iterator[None]:
    """The cases that ship, whatever set the developer uses."""
    with pytest.MonkeyPatch.context() as patch:
        for name in (ALQA, CONTEXT, EXTRACTOR):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(scope="session")
def legal(tmp_path_factory: pytest.TempPathFactory, shipped_cases: None) -> Iterator[OpenDomain]:
    """The legal domain, freshly built in a folder of its own."""
    opened = find_domain("legal").open(tmp_path_factory.mktemp("legal"), default_encoder(), False)
    yield opened
    opened.close()
