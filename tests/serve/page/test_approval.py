"""A plan that waits is shown with its price, and goes on by yes, no or an edited plan."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.serve.page.helpers import ask, ended, node
from tests.serve.service.helpers import Served
from tests.support.browser import Tab

TWO = "plan: s1 = quick(a=question); s2 = quick(a=s1.value)"


def ask_first(tab: Tab) -> None:
    """Ask by keyboard alone, to see the plan before it runs."""
    box = tab.page.get_by_label("show me the plan first")
    box.focus()
    tab.page.keyboard.press("Space")
    expect(box).to_be_checked()
    tab.page.get_by_label("Question", exact=True).focus()
    tab.page.keyboard.type(TWO)
    tab.page.keyboard.press("Enter")
    ended(tab, "waiting")
    expect(tab.page.locator("#status")).to_have_text("The plan waits for approval.")


def test_a_plan_that_waits_shows_its_price_and_runs_by_keyboard_alone(
    tab: Tab, plans: Served
) -> None:
    before = plans.did("quick")
    ask_first(tab)
    card = tab.page.locator("#approval-card")
    expect(card).to_contain_text("s2 = quick(a=s1.value)")
    expect(card).to_contain_text("Price: 2 calls (quick ×2)")
    assert plans.did("quick") == before
    tab.page.get_by_role("button", name="Yes, run it").focus()
    tab.page.keyboard.press("Enter")
    ended(tab, "answered")
    expect(node(tab, "s2")).to_have_attribute("data-status", "done")
    expect(tab.page.locator("#price")).to_contain_text("2 calls")
    assert plans.did("quick") == before + 2


def test_a_plan_that_is_not_approved_calls_nothing(tab: Tab, plans: Served) -> None:
    before = plans.did("quick")
    ask_first(tab)
    tab.page.get_by_role("button", name="No", exact=True).click()
    ended(tab, "answered")
    expect(tab.page.locator("#missing")).to_contain_text("not approved")
    assert plans.did("quick") == before


def test_an_edited_plan_is_checked_and_drawn_in_place_of_the_first(tab: Tab) -> None:
    ask_first(tab)
    tab.page.get_by_text("Edit the plan").click()
    field = tab.page.get_by_label("The plan as it should be")
    field.fill("s1 = delete()")
    tab.page.get_by_role("button", name="Run the edited plan").click()
    expect(tab.page.locator("#approval-card [role=alert]")).to_contain_text(
        "There is no tool delete"
    )
    field.fill("s1 = quick(a=question)")
    tab.page.get_by_role("button", name="Run the edited plan").click()
    ended(tab, "answered")
    expect(node(tab, "s1")).to_have_attribute("data-status", "done")
    expect(node(tab, "s2")).to_have_count(0)


def test_a_question_is_priced_without_approval_too(tab: Tab) -> None:
    ask(tab, TWO)
    expect(tab.page.locator("#price")).to_contain_text("Price: 2 calls (quick ×2)")
