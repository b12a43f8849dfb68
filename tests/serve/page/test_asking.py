"""The page shows the plan, its running steps, their results, and the cited answer."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.serve.helpers import GALAXY
from tests.serve.page.helpers import ask, edges, node, section, wait_for_state
from tests.serve.service.helpers import Served
from tests.support.browser import Tab
from tests.support.waiting import until


def test_page_shows_plan_times_evidence_and_cited_answer_of_two_steps(
    shopping: Tab,
) -> None:
    ask(shopping, GALAXY)
    page = shopping.page
    assert edges(shopping) == {"question s1", "s1 s2", "s2 answer"}
    expect(node(shopping, "s1")).to_contain_text(re.compile(r"order_lookup.*done · \d+ ms · 1 res"))
    expect(node(shopping, "s2")).to_contain_text(re.compile(r"prod_qna.*done · \d+ ms · \d+ res"))
    expect(page.locator("#answer")).to_contain_text("8 GB")
    expect(page.locator("#worded")).to_contain_text("Planned by case in")
    expect(page.locator("#worded")).to_contain_text("quoted, without a language model")
    link = page.locator("#answer a", has_text="[E2]").first
    link.click()
    evidence = page.locator("#evidence-E2")
    expect(evidence).to_be_in_viewport()
    expect(evidence).to_have_css("outline-style", "solid")
    expect(section(shopping, "s2")).to_contain_text("8 GB of memory")
    # The evidence links back to its citation.
    evidence.get_by_role("link").click()
    expect(page.locator("#cited-E2")).to_be_in_viewport()


def test_page_shows_planner_generator_and_customers_before_the_first_question(
    shopping: Tab,
) -> None:
    about = shopping.page.locator("#about")
    expect(about).to_contain_text("Planner: case. Generator: extractive.")
    shopping.page.get_by_text("Scope, context, thread").click()
    shopping.page.get_by_label("customer").select_option("C002")
    ask(shopping, "Where is my tablet?")
    expect(shopping.page.locator("#answer")).not_to_be_empty()


def test_click_on_an_example_question_asks_it(shopping: Tab) -> None:
    shopping.page.locator("#examples button").first.click()
    wait_for_state(shopping, "answered")
    expect(shopping.page.locator("#asked")).to_have_text(GALAXY)


def test_graph_shows_running_and_waiting_steps_during_a_run(tab: Tab) -> None:
    ask(tab, "plan: s1 = slow(b=1.5); s2 = quick(a=s1.value)", wait=False)
    expect(node(tab, "s1")).to_have_attribute("data-status", "running")
    expect(node(tab, "s2")).to_have_attribute("data-status", "waiting")
    expect(tab.page.locator("#status")).to_have_text("Running s1…")
    wait_for_state(tab, "answered")
    for step in ("s1", "s2"):
        expect(node(tab, step)).to_have_attribute("data-status", "done")
    expect(tab.page.locator("#timeline li")).to_have_count(2)


def test_page_shows_results_of_a_step_while_another_step_runs(tab: Tab) -> None:
    ask(tab, "plan: s1 = quick(a=question); s2 = slow(b=1.5)", wait=False)
    expect(section(tab, "s1")).to_contain_text("found for local")
    expect(node(tab, "s2")).to_have_attribute("data-status", "running")
    wait_for_state(tab, "answered")
    expect(section(tab, "s1").locator("article")).to_have_count(1)


def test_page_shows_failed_and_skipped_steps_and_what_the_answer_lacks(tab: Tab) -> None:
    ask(tab, "plan: s1 = broken(a=question); s2 = quick(a=s1.value); s3 = quick(a=question)")
    expect(node(tab, "s1")).to_contain_text("failed")
    expect(node(tab, "s2")).to_contain_text("skipped")
    expect(node(tab, "s3")).to_contain_text("done")
    missing = tab.page.locator("#missing")
    expect(missing).to_contain_text("s1 (broken) failed.")
    expect(missing).to_contain_text("s2 (quick) was skipped. It needs s1")
    expect(tab.page.locator("#answer")).to_contain_text("Missing:")
    expect(section(tab, "s1").locator(".alert")).to_contain_text("FileNotFoundError")
    assert "secret" not in tab.page.content()


def test_page_shows_a_table_of_the_rounds_of_relevance_feedback(tab: Tab) -> None:
    ask(tab, 'plan: s1 = films(query="the director of Jackass Mail")')
    expect(node(tab, "s1")).to_contain_text(re.compile(r"\d rounds"))
    table = section(tab, "s1").get_by_role("table")
    expect(table).to_contain_text("Rounds of relevance feedback")
    rows = table.locator("tbody tr")
    expect(rows.first).to_contain_text("question")
    assert rows.count() >= 2
    expect(section(tab, "s1")).to_contain_text(re.compile(r"Ended: .+\. Judge: offline\."))


def test_tool_that_waits_for_a_reply_gets_it_from_the_page(tab: Tab) -> None:
    tab.page.get_by_text("Scope, context, thread").click()
    tab.page.get_by_label("Keep as thread").fill("waits")
    ask(tab, 'plan: s1 = asks(a="Which lathe?")')
    expect(tab.page.locator("#waiting")).to_contain_text("Which lathe?")
    tab.page.get_by_label("Reply").fill("the red one")
    tab.page.get_by_label("Reply").press("Enter")
    wait_for_state(tab, "answered")
    expect(tab.page.locator("#answer")).to_contain_text("the user says the red one")


def test_stop_button_cancels_the_run_in_the_service(tab: Tab, plans: Served) -> None:
    before = plans.count_events("cancelled")
    ask(tab, "plan: s1 = slow(b=30)", wait=False)
    expect(node(tab, "s1")).to_have_attribute("data-status", "running")
    tab.page.get_by_role("button", name="Stop").click()
    wait_for_state(tab, "stopped")
    expect(node(tab, "s1")).to_contain_text("stopped")
    until(lambda: plans.count_events("cancelled") > before, 10)
    ask(tab, "and after it?")
    expect(tab.page.locator("#answer")).to_contain_text("found for")


def test_page_shows_why_a_context_is_refused(tab: Tab) -> None:
    tab.page.get_by_text("Scope, context, thread").click()
    tab.page.get_by_label("Context, a JSON object").fill("{not json")
    ask(tab, "what?", wait=False)
    expect(tab.page.get_by_role("alert")).to_contain_text("The context is not JSON")
    tab.page.get_by_label("Context, a JSON object").fill("[1]")
    ask(tab, "what?")
    expect(tab.page.get_by_role("alert")).to_contain_text("context: Input should be")
    tab.remove_problems("status of 422")
    tab.page.get_by_label("Context, a JSON object").fill("")
    ask(tab, "what now?")
    expect(tab.page.get_by_role("alert")).to_be_hidden()


def test_follow_up_question_is_sent_with_the_earlier_turns_as_history(tab: Tab) -> None:
    history_box = tab.page.get_by_label("with the earlier questions as history")
    expect(history_box).to_be_disabled()
    ask(tab, "the first")
    history_box.check()
    with tab.page.expect_request("**/ask/stream") as request:
        ask(tab, "and the second?")
    body = request.value.post_data_json
    assert [turn["question"] for turn in body["history"]] == ["the first"]
    assert "found for" in body["history"][0]["answer"]
    tab.page.locator("#runs button", has_text="the first").click()
    expect(tab.page.locator("#asked")).to_have_text("the first")
