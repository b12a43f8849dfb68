"""Several runs on one page: no run is lost, and no run gets data of another."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, expect

from casewright.planner.request import MAX_QUESTION_CHARACTERS
from tests.serve.page.helpers import ask, node, wait_for_state
from tests.serve.service.helpers import served
from tests.support.browser import Tab, opened


def test_run_continues_while_the_page_shows_another_run(tab: Tab) -> None:
    ask(tab, "the first")
    ask(tab, "plan: s1 = slow(b=2)", wait=False)
    expect(node(tab, "s1")).to_have_attribute("data-status", "running")
    runs = tab.page.locator("#runs")
    runs.get_by_role("button", name="the first").click()
    expect(tab.page.locator("#run")).to_have_attribute("data-state", "answered")
    # Escape stops only the run that is shown.
    tab.page.keyboard.press("Escape")
    runs.get_by_role("button", name="slow").click()
    expect(node(tab, "s1")).to_have_attribute("data-status", "running")
    wait_for_state(tab, "answered")


def test_failure_of_a_hidden_run_is_shown_only_with_that_run(
    browser: Browser, tmp_path: Path
) -> None:
    with served(tmp_path, tokens={}) as service, opened(browser, f"{service.url}/") as tab:
        ask(tab, "the first")
        ask(tab, "plan: s1 = slow(b=30); s2 = quick(a=s1.value)", wait=False)
        expect(node(tab, "s1")).to_have_attribute("data-status", "running")
        tab.page.get_by_role("button", name="the first").click()
        service.process.kill()
        expect(tab.page.locator("#runs small").first).to_have_text("failed")
        expect(tab.page.get_by_role("alert")).to_be_hidden()
        tab.page.locator("#runs button").first.click()
        expect(tab.page.get_by_role("alert")).to_contain_text("broke off")
        expect(node(tab, "s1")).to_contain_text("stopped")
        expect(node(tab, "s2")).to_contain_text("not run")
        tab.page.get_by_role("button", name="Ask again").click()
        expect(tab.page.get_by_role("alert")).to_contain_text("cannot be reached")
        tab.remove_problems("ERR_")


def test_second_question_is_refused_while_the_first_runs(tab: Tab) -> None:
    ask(tab, "plan: s1 = slow(b=1.5)", wait=False)
    expect(node(tab, "s1")).to_have_attribute("data-status", "running")
    tab.page.get_by_label("Question", exact=True).fill("another")
    tab.page.keyboard.press("Enter")
    expect(tab.page.get_by_role("alert")).to_contain_text("Another question is under way")
    wait_for_state(tab, "answered")
    expect(tab.page.locator("#runs li")).to_have_count(1)


def test_history_contains_only_turns_of_the_selected_customer(
    browser: Browser, tmp_path: Path
) -> None:
    options = {"tokens": {}, "scopes": {"customer": ["C1", "C2"]}}
    with served(tmp_path, **options) as service, opened(browser, f"{service.url}/") as tab:
        tab.page.get_by_text("Scope, context, thread").click()
        ask(tab, "my orders")
        tab.page.get_by_label("with the earlier questions as history").check()
        tab.page.get_by_label("customer").select_option("C2")
        with tab.page.expect_request("**/ask/stream") as other_request:
            ask(tab, "and mine?")
        assert other_request.value.post_data_json["history"] == []
        tab.page.get_by_label("customer").select_option("C1")
        with tab.page.expect_request("**/ask/stream") as own_request:
            ask(tab, "and now?")
        turns = own_request.value.post_data_json["history"]
        assert [turn["question"] for turn in turns] == ["my orders"]


def test_page_offers_no_button_to_store_an_answer_with_context(tab: Tab) -> None:
    button = tab.page.get_by_role("button", name="Keep this answer as a case")
    ask(tab, "on its own")
    expect(button).to_be_visible()
    tab.page.get_by_text("Scope, context, thread").click()
    tab.page.get_by_label("Context, a JSON object").fill('{"product_id": "P1"}')
    ask(tab, "of that one")
    expect(button).to_be_hidden()


def test_edges_pass_around_steps_and_answers_without_evidence_are_marked_empty(tab: Tab) -> None:
    chain = "s1 = quick(a=question); s2 = quick(a=s1.value)"
    ask(tab, f"plan: {chain}; s3 = quick(a=s1.value, b=s2.value)")
    box = node(tab, "s2").bounding_box()
    line = tab.page.locator('#graph path[data-edge="s1 s3"]').bounding_box()
    assert box is not None
    assert line is not None
    assert line["y"] < box["y"] - 5
    expect(node(tab, "s3")).to_contain_text("after s1, s2")
    expect(node(tab, "answer")).to_have_attribute("data-status", "done")
    ask(tab, "plan: s1 = broken(a=question)")
    expect(node(tab, "answer")).to_have_attribute("data-status", "empty")


def test_page_refuses_invalid_input_and_unfolds_its_field(tab: Tab) -> None:
    ask(tab, "   ", wait=False)
    expect(tab.page.get_by_role("alert")).to_have_text("Write a question.")
    tab.page.get_by_text("Scope, context, thread").click()
    tab.page.get_by_label("Keep as thread").fill("no good name!")
    tab.page.get_by_text("Scope, context, thread").click()
    ask(tab, "a question", wait=False)
    expect(tab.page.get_by_label("Keep as thread")).to_be_visible()
    maximum = tab.page.locator("#question").get_attribute("maxlength")
    assert maximum == str(MAX_QUESTION_CHARACTERS)


def test_enter_and_escape_of_an_input_method_neither_ask_nor_stop(tab: Tab) -> None:
    question = tab.page.get_by_label("Question", exact=True)
    question.fill("plan: s1 = slow(b=2)")
    press = "node => node.dispatchEvent(new KeyboardEvent('keydown', {key, isComposing: true}))"
    question.evaluate(f"(node, key) => ({press})(node)", "Enter")
    expect(tab.page.locator("#run")).to_be_hidden()
    question.press("Enter")
    expect(node(tab, "s1")).to_have_attribute("data-status", "running")
    question.evaluate(
        "node => node.dispatchEvent(new KeyboardEvent('keydown',"
        " {key: 'Escape', isComposing: true, bubbles: true}))"
    )
    wait_for_state(tab, "answered")


def test_focus_is_kept_after_asking_stopping_and_answering(tab: Tab) -> None:
    def focused() -> str:
        return str(tab.page.evaluate("() => document.activeElement.id"))

    ask(tab, "plan: s1 = slow(b=30)", wait=False)
    expect(node(tab, "s1")).to_have_attribute("data-status", "running")
    assert focused() == "send"
    tab.page.get_by_role("button", name="Stop").click()
    wait_for_state(tab, "stopped")
    assert focused() == "question"
    ask(tab, "plan: s1 = quick(a=question); s2 = slow(b=1)", wait=False)
    node(tab, "s2").press("Enter")
    assert focused() == "step-s2"
    wait_for_state(tab, "answered")
    assert focused() == "step-s2"
