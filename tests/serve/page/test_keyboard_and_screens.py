"""The page works with the keyboard alone, on narrow screens, and with assistive technology."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect

from tests.serve.page.helpers import ask, node, section, wait_for_state
from tests.serve.service.helpers import Served
from tests.support.browser import Tab, opened

WIDE: Any = {"width": 1200, "height": 900}
NARROW: Any = {"width": 320, "height": 640}
FORKED = "plan: s1 = quick(a=question); s2 = broken(a=question); s3 = quick(a=[s1.value, s1.value])"


def test_asking_stopping_and_opening_evidence_work_with_the_keyboard(tab: Tab) -> None:
    press = tab.page.keyboard.press
    press("/")
    expect(tab.page.get_by_label("Question", exact=True)).to_be_focused()
    tab.page.keyboard.type("two lines,")
    press("Shift+Enter")
    tab.page.keyboard.type("plan: s1 = slow(b=20)")
    press("Enter")
    expect(node(tab, "s1")).to_have_attribute("data-status", "running")
    press("Escape")
    wait_for_state(tab, "stopped")
    press("Control+a")
    tab.page.keyboard.type("plan: s1 = quick(a=question)")
    press("Enter")
    wait_for_state(tab, "answered")
    for _ in range(30):
        press("Tab")
        if node(tab, "s1").evaluate("node => node === document.activeElement"):
            break
    press("Enter")
    expect(section(tab, "s1")).to_be_focused()
    tab.page.get_by_role("link", name="[E1]").focus()
    press("Enter")
    expect(tab.page.locator("#evidence-E1")).to_be_in_viewport()
    press("/")
    expect(tab.page.get_by_label("Question", exact=True)).to_be_focused()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_page_breaks_no_accessibility_rule_and_fits_the_width_of_the_screen(
    browser: Browser, plans: Served, scheme: str, size: Any
) -> None:
    with opened(browser, f"{plans.url}/", color_scheme=scheme, viewport=size) as tab:
        ask(tab, FORKED)
        tab.page.get_by_text("Scope, context, thread").click()
        tab.page.get_by_text("Open a run").click()
        # WCAG 2 A and AA: contrast, names, roles, landmarks.
        results = Axe().run(tab.page)
        assert results.violations_count == 0, results.generate_report()
        width = tab.page.evaluate("() => document.documentElement.scrollWidth")
        assert width <= size["width"]


def test_narrow_screen_draws_the_graph_from_top_to_bottom(browser: Browser, plans: Served) -> None:
    is_vertical = {}
    for name, size in (("wide", WIDE), ("narrow", NARROW)):
        with opened(browser, f"{plans.url}/", viewport=size) as tab:
            ask(tab, FORKED)
            boxes = [node(tab, step).bounding_box() for step in ("s1", "s3")]
            assert boxes[0] is not None
            assert boxes[1] is not None
            is_vertical[name] = boxes[1]["y"] - boxes[0]["y"] >= boxes[0]["height"]
    assert is_vertical == {"wide": False, "narrow": True}


def test_background_colour_differs_between_light_and_dark_colour_scheme(
    browser: Browser, plans: Served
) -> None:
    colours = []
    for scheme in ("light", "dark"):
        with opened(browser, f"{plans.url}/", color_scheme=scheme) as tab:
            body = tab.page.locator("body")
            colours.append(body.evaluate("node => getComputedStyle(node).backgroundColor"))
    assert len(set(colours)) == 2
