from __future__ import annotations

from collections.abc import Iterator

import pytest

from casewright.domains import OpenDomain, find_domain
from casewright.stores import default_encoder
from casewright_legal.data import ALQA_VARIABLE, CONTEXT_VARIABLE, EXTRACTOR_VARIABLE


@pytest.fixture(scope="session", autouse=True)
def _shipped() -> Iterator[None]:
    """Use the shipped cases in every test of this folder, even if the environment names others."""
    with pytest.MonkeyPatch.context() as patch:
        for name in (ALQA_VARIABLE, CONTEXT_VARIABLE, EXTRACTOR_VARIABLE):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(scope="session")
def legal(tmp_path_factory: pytest.TempPathFactory, _shipped: None) -> Iterator[OpenDomain]:
    """Yield the legal domain, newly built in a temporary folder."""
    opened = find_domain("legal").open(tmp_path_factory.mktemp("legal"), default_encoder(), False)
    yield opened
    opened.close()
