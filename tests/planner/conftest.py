from __future__ import annotations

from collections.abc import Iterator

import pytest

from casewright.domains import OpenDomain, find_domain
from casewright.planner import AnnotatedQuery, CasePlanner
from tests.planner.helpers import case_planner
from tests.support.encoders import HashingEncoder
from tests.support.shipped import shop_queries


@pytest.fixture(scope="session")
def shop_planner() -> CasePlanner:
    """Return a planner for the small shop of ``helpers``."""
    return case_planner()


@pytest.fixture(scope="session")
def shopping_queries() -> list[AnnotatedQuery]:
    return shop_queries()


@pytest.fixture(scope="session")
def shopping(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenDomain]:
    """Yield the shopping domain; its stores are encoded by ``HashingEncoder``."""
    folder = tmp_path_factory.mktemp("shopping")
    opened = find_domain("shopping").open(folder, HashingEncoder(128))
    yield opened
    opened.close()
