"""The page stores corrections of plans."""

from __future__ import annotations

import json

from playwright.sync_api import expect

from tests.serve.page.helpers import ask
from tests.serve.service.helpers import Served
from tests.support.browser import Tab


def test_page_stores_a_corrected_plan_as_an_annotated_message(tab: Tab, plans: Served) -> None:
    question = "plan: s1 = quick(a=question); s2 = quick(a=s1.value)"
    ask(tab, question)
    tab.page.get_by_text("Correct this plan").click()
    field = tab.page.get_by_label("The right plan, one step per line")
    expect(field).to_have_value("s1 = quick(a=question)\ns2 = quick(a=s1.value)")
    button = tab.page.get_by_role("button", name="Keep it as an annotated message")
    field.fill("s1 = gone()")
    button.click()
    expect(tab.page.get_by_role("alert")).to_contain_text("gone")
    tab.remove_problems("status of 4")
    field.fill("s1 = quick(a=question)")
    button.click()
    expect(tab.page.locator("#corrected")).to_have_text("As an annotated message: added.")
    lines = plans.log.with_name("corrections.jsonl").read_text("utf-8").splitlines()
    message = json.loads(lines[-1])
    assert (message["query"], message["plan"]) == (question, "s1 = quick(a=question)")
