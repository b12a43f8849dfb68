"""A real browser for tests of pages: the system's Chromium, controlled by Playwright."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
#: Chromium must send no requests other than those of the page.
ARGUMENTS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

#: Timeout of an action or an expectation in milliseconds, long enough for a busy machine.
WAIT = 20_000


@contextmanager
def chromium() -> Iterator[Browser]:
    """Yield Chromium; skip the test if it is not installed."""
    path = next((path for name in NAMES if (path := shutil.which(name))), None)
    if path is None:
        pytest.skip("There is no Chromium: make browser installs Debian's.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield browser
        browser.close()


@dataclass
class Tab:
    """A tab that records errors.

    Attributes:
        page: Playwright's page.
        host: The only host to which the page may send requests.
        problems: Errors and warnings of the console, requests to other hosts, and dialogs.
    """

    page: Page
    host: str
    problems: list[str] = field(default_factory=list)

    def listen(self) -> None:
        def on_console(message: Any) -> None:
            if message.type in ("error", "warning"):
                self.problems.append(f"{message.type}: {message.text}")

        def on_request(request: Any) -> None:
            url = urlsplit(request.url)
            if url.scheme not in ("data", "blob") and url.netloc != self.host:
                self.problems.append(f"request: {request.url}")

        def on_dialog(dialog: Any) -> None:
            self.problems.append(f"dialog: {dialog.message}")
            dialog.dismiss()

        self.page.on("console", on_console)
        self.page.on("pageerror", lambda error: self.problems.append(f"thrown: {error}"))
        self.page.on("request", on_request)
        self.page.on("dialog", on_dialog)

    def remove_problems(self, pattern: str) -> None:
        """Remove the problems that a test caused on purpose; fail if there are none."""
        expected = [problem for problem in self.problems if re.search(pattern, problem)]
        assert expected, f"no {pattern!r} in {self.problems}"
        self.problems = [problem for problem in self.problems if problem not in expected]


@contextmanager
def opened(browser: Browser, url: str, **options: Any) -> Iterator[Tab]:
    """Yield a tab with a page; fail at the end if the tab recorded problems.

    Args:
        browser: The browser.
        url: The absolute URL of the page.
        options: Options of Playwright's context: ``viewport``, ``color_scheme``, …
    """
    with browser.new_context(**options) as context:
        context.set_default_timeout(WAIT)
        expect.set_options(timeout=WAIT)
        tab = Tab(context.new_page(), urlsplit(url).netloc)
        tab.listen()
        tab.page.goto(url)
        yield tab
        assert tab.problems == []
