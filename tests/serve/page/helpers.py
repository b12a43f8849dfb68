"""What the page's tests share: asking, and what they look at."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, expect

from tests.support.browser import Tab

ENDED = re.compile("answered|failed|stopped|waiting")


def ask(tab: Tab, question: str, *, wait: bool = True) -> None:
    tab.page.get_by_label("Question", exact=True).fill(question)
    tab.page.get_by_role("button", name="Ask", exact=True).click()
    if wait:
        ended(tab)


def ended(tab: Tab, how: str | re.Pattern[str] = ENDED) -> None:
    expect(tab.page.locator("#run")).to_have_attribute("data-state", how, timeout=40_000)


def node(tab: Tab, step: str) -> Locator:
    """A step's place in the graph."""
    return tab.page.locator(f'#graph [data-node="{step}"]')


def section(tab: Tab, step: str) -> Locator:
    """What a step found."""
    return tab.page.locator(f"#step-{step}")


def edges(tab: Tab) -> set[str]:
    drawn = tab.page.locator("#graph path").all()
    return {str(path.get_attribute("data-edge")) for path in drawn}
