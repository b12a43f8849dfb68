"""The page shows a waiting plan with its price; the user approves, refuses or edits the plan."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, expect

from tests.serve.page.helpers import ask, node, section, wait_for_state
from tests.serve.service.helpers import Served
from tests.support.browser import Tab

TWO_STEPS = "plan: s1 = quick(a=question); s2 = quick(a=s1.value)"


def ask_for_approval(tab: Tab) -> None:
    """Ask with the keyboard for a plan that waits for approval."""
    box = tab.page.get_by_label("show me the plan first")
    box.focus()
    tab.page.keyboard.press("Space")
    expect(box).to_be_checked()
    tab.page.get_by_label("Question", exact=True).focus()
    tab.page.keyboard.type(TWO_STEPS)
    tab.page.keyboard.press("Enter")
    wait_for_state(tab, "waiting")
    expect(tab.page.locator("#status")).to_have_text("The plan waits for approval.")


def test_waiting_plan_shows_its_price_and_is_approved_with_the_keyboard(
    tab: Tab, plans: Served
) -> None:
    before = plans.count_events("quick")
    ask_for_approval(tab)
    card = tab.page.locator("#waiting-card")
    expect(card).to_contain_text("s2 = quick(a=s1.value)")
    expect(card).to_contain_text("Price: 2 calls (quick ×2)")
    assert plans.count_events("quick") == before
    tab.page.get_by_role("button", name="Yes, run it").focus()
    tab.page.keyboard.press("Enter")
    wait_for_state(tab, "answered")
    expect(node(tab, "s2")).to_have_attribute("data-status", "done")
    expect(tab.page.locator("#price")).to_contain_text("2 calls")
    assert plans.count_events("quick") == before + 2


def test_plan_that_is_not_approved_calls_no_tool(tab: Tab, plans: Served) -> None:
    before = plans.count_events("quick")
    ask_for_approval(tab)
    tab.page.get_by_role("button", name="No", exact=True).click()
    wait_for_state(tab, "answered")
    expect(tab.page.locator("#missing")).to_contain_text("not approved")
    assert plans.count_events("quick") == before


def focus(tab: Tab, element: Locator) -> None:
    """Press the Tab key until the element has the focus."""
    for _ in range(80):
        tab.page.keyboard.press("Tab")
        if element.evaluate("node => node === document.activeElement"):
            return
    raise AssertionError("the Tab key does not reach the element")


def choose_option(tab: Tab, label: str, typed: str) -> None:
    """Choose the option that begins with ``typed`` in a list, with the keyboard."""
    field = tab.page.get_by_label(label, exact=True)
    focus(tab, field)
    tab.page.keyboard.type(typed)
    expect(field.locator("option:checked")).to_have_text(re.compile(re.escape(typed)))


def test_waiting_plan_is_edited_in_form_fields_with_the_keyboard(tab: Tab, plans: Served) -> None:
    before = plans.count_events("quick")
    ask_for_approval(tab)
    focus(tab, tab.page.get_by_text("Edit the plan"))
    tab.page.keyboard.press("Enter")
    assert tab.page.locator("#waiting-card textarea").count() == 0
    choose_option(tab, "a of s1", "a text")
    focus(tab, tab.page.get_by_label("a of s1, text"))
    tab.page.keyboard.type('a "lamp"')
    focus(tab, tab.page.get_by_role("button", name="Add a step"))
    tab.page.keyboard.press("Enter")
    choose_option(tab, "Tool of s3", "films")
    choose_option(tab, "query of s3", "s2.value")
    focus(tab, tab.page.get_by_role("button", name="Run the edited plan"))
    tab.page.keyboard.press("Enter")
    wait_for_state(tab, "answered")
    calls = tab.page.locator("#steps .call")
    expect(calls).to_have_text(
        ['quick(a="a \\"lamp\\"")', "quick(a=s1.value)", "films(query=s2.value)"]
    )
    assert plans.count_events("quick") == before + 2


def test_plan_editor_offers_only_valid_values_and_keeps_references_valid(tab: Tab) -> None:
    ask_for_approval(tab)
    tab.page.get_by_text("Edit the plan").click()
    options = tab.page.get_by_label("a of s1", exact=True).locator("option")
    assert not [text for text in options.all_text_contents() if text.startswith("s")]
    references = tab.page.get_by_label("b of s2", exact=True).locator("option")
    assert "s1.value" in references.all_text_contents()
    # Removing a step removes the references to it and renumbers the other references.
    tab.page.get_by_role("button", name="Add a step").click()
    tab.page.get_by_label("a of s3", exact=True).select_option("s2.value")
    tab.page.get_by_role("button", name="Remove s1").click()
    expect(tab.page.get_by_label("a of s1", exact=True)).to_have_value("")
    expect(tab.page.get_by_label("a of s2", exact=True)).to_have_value("s1.value")
    # An argument can be a list, and a step can be moved up.
    tab.page.get_by_label("b of s2", exact=True).select_option("a list…")
    tab.page.get_by_label("b of s2, item 1", exact=True).select_option("question")
    tab.page.get_by_role("button", name="One more of b of s2").click()
    tab.page.get_by_label("b of s2, item 2", exact=True).select_option("true")
    tab.page.get_by_role("button", name="Move up s2").click()
    tab.page.get_by_role("button", name="Run the edited plan").click()
    wait_for_state(tab, "answered")
    expect(tab.page.locator("#steps .call")).to_have_text(["quick(b=[question, true])", "quick()"])


def test_plan_editor_shows_the_violation_of_an_edited_plan(tab: Tab) -> None:
    ask_for_approval(tab)
    tab.page.get_by_text("Edit the plan").click()
    tab.page.get_by_label("b of s1", exact=True).select_option("a number…")
    tab.page.get_by_label("b of s1, number").fill("1" * 20)
    tab.page.get_by_role("button", name="Run the edited plan").click()
    expect(tab.page.locator("#waiting-card [role=alert]")).to_contain_text("more than 64 bits")
    tab.page.get_by_role("button", name="Remove s2").click()
    tab.page.get_by_role("button", name="Run the edited plan").click()
    wait_for_state(tab, "answered")
    expect(node(tab, "s1")).to_have_attribute("data-status", "done")
    expect(node(tab, "s2")).to_have_count(0)


def test_page_shows_the_price_of_a_plan_without_approval(tab: Tab) -> None:
    ask(tab, TWO_STEPS)
    expect(tab.page.locator("#price")).to_contain_text("Price: 2 calls (quick ×2)")


QUESTION = 'plan: s1 = asks(a="Which lathe?"); s2 = asks(a="Which mill?"); s3 = nested(a="a lathe")'


def test_all_waiting_questions_are_on_one_card_and_answered_by_one_request(
    tab: Tab,
) -> None:
    tab.page.get_by_text("Scope, context, thread").click()
    tab.page.get_by_label("Keep as thread").fill("several")
    urls: list[str] = []
    tab.page.on("request", lambda request: urls.append(request.url))
    ask(tab, QUESTION)
    expect(tab.page.locator("#status")).to_have_text("3 questions wait for replies.")
    card = tab.page.locator("#waiting-card")
    expect(card.get_by_role("group")).to_contain_text(["Which lathe?", "Which mill?"])
    for question, reply in (("Which lathe?", "M1"), ("Which mill?", "M2")):
        focus(tab, card.get_by_role("group", name=question).get_by_label("Reply"))
        tab.page.keyboard.type(reply)
    # The plan has no reply yet, so it gets the focus, and the typed replies stay.
    tab.page.keyboard.press("Enter")
    expect(card.locator("section")).to_be_focused()
    focus(tab, card.get_by_role("button", name="Yes, run it"))
    tab.page.keyboard.press("Enter")
    expect(card.get_by_role("status")).to_have_text("Chosen: yes.")
    focus(tab, card.get_by_role("button", name="Send all replies"))
    tab.page.keyboard.press("Enter")
    wait_for_state(tab, "answered")
    for step, text in (("s1", "the user says M1"), ("s2", "the user says M2"), ("s3", "found for")):
        expect(section(tab, step)).to_contain_text(text)
    assert sum("/resume" in url for url in urls) == 1
