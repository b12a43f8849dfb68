"""Helpers for tests of the page: asking a question, and finding elements."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, expect

from tests.support.browser import Tab

ENDED = re.compile("answered|failed|stopped|waiting")


def ask(tab: Tab, question: str, *, wait: bool = True) -> None:
    tab.page.get_by_label("Question", exact=True).fill(question)
    tab.page.get_by_role("button", name="Ask", exact=True).click()
    if wait:
        wait_for_state(tab)


def wait_for_state(tab: Tab, state: str | re.Pattern[str] = ENDED) -> None:
    expect(tab.page.locator("#run")).to_have_attribute("data-state", state, timeout=40_000)


def node(tab: Tab, step: str) -> Locator:
    """Return the node of a step in the graph."""
    return tab.page.locator(f'#graph [data-node="{step}"]')


def section(tab: Tab, step: str) -> Locator:
    """Return the section with the results of a step."""
    return tab.page.locator(f"#step-{step}")


def edges(tab: Tab) -> set[str]:
    paths = tab.page.locator("#graph path").all()
    return {str(path.get_attribute("data-edge")) for path in paths}
