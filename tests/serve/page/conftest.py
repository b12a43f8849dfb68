from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.serve.helpers import copied_home, environment
from tests.serve.service.helpers import Served, served, started
from tests.serve.service.test_serve_command import SERVE
from tests.support.browser import Tab, chromium, opened


# One browser per package, not per session: Playwright's event loop runs in this thread until the
# browser is closed, and the tests of other folders have their own event loops.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="session")
def shop(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Yield `casewright serve` for the shop, with a copy of the stores, which it locks."""
    folder = tmp_path_factory.mktemp("shop")
    copy = copied_home(home, folder / "home")
    with started([*SERVE, "--without-tokens"], folder, **environment(copy)) as running:
        yield running


@pytest.fixture(scope="session")
def plans(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Yield a service without tokens that runs the plan in the text of each question."""
    folder = tmp_path_factory.mktemp("plans")
    settings = {"retain": "approved", "corrections_file": str(folder / "corrections.jsonl")}
    with served(folder, tokens={}, **settings) as running:
        yield running


@pytest.fixture
def shopping(browser: Browser, shop: Served) -> Iterator[Tab]:
    with opened(browser, f"{shop.url}/") as tab:
        yield tab


@pytest.fixture
def tab(browser: Browser, plans: Served) -> Iterator[Tab]:
    with opened(browser, f"{plans.url}/") as new_tab:
        yield new_tab
