from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.serve.helpers import copied_home, environment
from tests.serve.service.helpers import Served, served, started
from tests.serve.service.test_serve_command import SERVE
from tests.support.browser import Tab, chromium, opened


# Playwright's event loop runs in this thread for as long as its browser does: other folders' tests
# have loops of their own.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="session")
def shop(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """`casewright serve` over the shop, with stores of its own: it holds them."""
    folder = tmp_path_factory.mktemp("shop")
    own = copied_home(home, folder / "home")
    with started([*SERVE, "--without-tokens"], folder, **environment(own)) as running:
        yield running


@pytest.fixture(scope="session")
def plans(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service that runs the plan that a question holds, without tokens."""
    folder = tmp_path_factory.mktemp("plans")
    kept = {"retain": "approved", "corrections_file": str(folder / "corrections.jsonl")}
    with served(folder, tokens={}, **kept) as running:
        yield running


@pytest.fixture
def shopping(browser: Browser, shop: Served) -> Iterator[Tab]:
    with opened(browser, f"{shop.url}/") as tab:
        yield tab


@pytest.fixture
def tab(browser: Browser, plans: Served) -> Iterator[Tab]:
    with opened(browser, f"{plans.url}/") as made:
        yield made
