"""A real browser for tests of pages: Chromium of the system, driven by Playwright."""

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
#: It is to ask nobody for anything but what the page asks for.
ARGUMENTS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


#: Milliseconds that an action or an expectation waits, for a machine with other work.
WAIT = 20_000


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start Chromium; the test is skipped where there is none."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("There is no Chromium: make browser installs Debian's.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(ARGUMENTS))
        yield browser
        browser.close()


@dataclass
class Tab:
    """A tab that remembers what went wrong in it.

    Attributes:
        page: Playwright's page.
        host: The only one that it may ask.
        troubles: Errors and warnings of its console, requests to other hosts, and dialogs.
    """

    page: Page
    host: str
    troubles: list[str] = field(default_factory=list)

    def listen(self) -> None:
        def said(message: Any) -> None:
            if message.type in ("error", "warning"):
                self.troubles.append(f"{message.type}: {message.text}")

        def asked(request: Any) -> None:
            url = urlsplit(request.url)
            if url.scheme not in ("data", "blob") and url.netloc != self.host:
                self.troubles.append(f"request: {request.url}")

        def popped(dialog: Any) -> None:
            self.troubles.append(f"dialog: {dialog.message}")
            dialog.dismiss()

        self.page.on("console", said)
        self.page.on("pageerror", lambda error: self.troubles.append(f"thrown: {error}"))
        self.page.on("request", asked)
        self.page.on("dialog", popped)

    def forgive(self, pattern: str) -> None:
        """Take out what a test brings about on purpose; it has to have happened."""
        fine = [one for one in self.troubles if re.search(pattern, one)]
        assert fine, f"no {pattern!r} in {self.troubles}"
        self.troubles = [one for one in self.troubles if one not in fine]


@contextmanager
def opened(browser: Browser, url: str, **options: Any) -> Iterator[Tab]:
    """Open a tab, and see at its end that nothing went wrong in it.

    Args:
        browser: The browser.
        url: The page's whole address.
        options: Of Playwright's context: ``viewport``, ``color_scheme``, …
    """
    with browser.new_context(**options) as context:
        context.set_default_timeout(WAIT)
        expect.set_options(timeout=WAIT)
        tab = Tab(context.new_page(), urlsplit(url).netloc)
        tab.listen()
        tab.page.goto(url)
        yield tab
        assert tab.troubles == []
