"""Several runs on one page: none is lost, none gets what belongs to another."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, expect

from casewright.planner.request import MAX_QUESTION_CHARACTERS
from tests.serve.page.helpers import ask, ended, node
from tests.serve.service.helpers import served
from tests.support.browser import Tab, opened


def test_run_under_way_is_found_again_while_another_is_looked_at(tab: Tab) -> None:
    ask(tab, "the first")
    ask(tab, "plan: s1 = slow(b=2)", wait=False)
    expect(node(tab, "s1")).to_have_attribute("data-status", "running")
    runs = tab.page.locator("#runs")
    runs.get_by_role("button", name="the first").click()
    expect(tab.page.locator("#run")).to_have_attribute("data-state", "answered")
    # Esc stops what is looked at, and nothing behind it.
    tab.page.keyboard.press("Escape")
    runs.get_by_role("button", name="slow").click()
    expect(node(tab, "s1")).to_have_attribute("data-status", "running")
    ended(tab, "answered")


def test_run_that_fails_behind_another_says_so_in_its_own_place(
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
        tab.forgive("ERR_")


def test_second_question_waits_for_the_first(tab: Tab) -> None:
    ask(tab, "plan: s1 = slow(b=1.5)", wait=False)
    expect(node(tab, "s1")).to_have_attribute("data-status", "running")
    tab.page.get_by_label("Question", exact=True).fill("another")
    tab.page.keyboard.press("Enter")
    expect(tab.page.get_by_role("alert")).to_contain_text("Another question is under way")
    ended(tab, "answered")
    expect(tab.page.locator("#runs li")).to_have_count(1)


def test_history_of_one_asker_is_not_sent_as_another_s(browser: Browser, tmp_path: Path) -> None:
    options = {"tokens": {}, "scopes": {"customer": ["C1", "C2"]}}
    with served(tmp_path, **options) as service, opened(browser, f"{service.url}/") as tab:
        tab.page.get_by_text("Scope, context, thread").click()
        ask(tab, "my orders")
        tab.page.get_by_label("with the earlier questions as history").check()
        tab.page.get_by_label("customer").select_option("C2")
        with tab.page.expect_request("**/ask/stream") as other:
            ask(tab, "and mine?")
        assert other.value.post_data_json["history"] == []
        tab.page.get_by_label("customer").select_option("C1")
        with tab.page.expect_request("**/ask/stream") as own:
            ask(tab, "and now?")
        turns = own.value.post_data_json["history"]
        assert [turn["question"] for turn in turns] == ["my orders"]


def test_answer_that_needs_its_context_is_not_offered_to_be_kept(tab: Tab) -> None:
    keep = tab.page.get_by_role("button", name="Keep this answer as a case")
    ask(tab, "on its own")
    expect(keep).to_be_visible()
    tab.page.get_by_text("Scope, context, thread").click()
    tab.page.get_by_label("Context, a JSON object").fill('{"product_id": "P1"}')
    ask(tab, "of that one")
    expect(keep).to_be_hidden()


def test_lines_around_steps_are_seen_and_an_answer_without_evidence_is_not_green(tab: Tab) -> None:
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


def test_what_cannot_be_asked_is_told_though_its_field_is_folded_away(tab: Tab) -> None:
    ask(tab, "   ", wait=False)
    expect(tab.page.get_by_role("alert")).to_have_text("Write a question.")
    tab.page.get_by_text("Scope, context, thread").click()
    tab.page.get_by_label("Keep as thread").fill("no good name!")
    tab.page.get_by_text("Scope, context, thread").click()
    ask(tab, "a question", wait=False)
    expect(tab.page.get_by_label("Keep as thread")).to_be_visible()
    longest = tab.page.locator("#question").get_attribute("maxlength")
    assert longest == str(MAX_QUESTION_CHARACTERS)


def test_words_that_are_being_composed_are_neither_asked_nor_stopped(tab: Tab) -> None:
    question = tab.page.get_by_label("Question", exact=True)
    question.fill("plan: s1 = slow(b=2)")
    composed = "node => node.dispatchEvent(new KeyboardEvent('keydown', {key, isComposing: true}))"
    question.evaluate(f"(node, key) => ({composed})(node)", "Enter")
    expect(tab.page.locator("#run")).to_be_hidden()
    question.press("Enter")
    expect(node(tab, "s1")).to_have_attribute("data-status", "running")
    question.evaluate(
        "node => node.dispatchEvent(new KeyboardEvent('keydown',"
        " {key: 'Escape', isComposing: true, bubbles: true}))"
    )
    ended(tab, "answered")


def test_focus_is_never_lost(tab: Tab) -> None:
    def focused() -> str:
        return str(tab.page.evaluate("() => document.activeElement.id"))

    ask(tab, "plan: s1 = slow(b=30)", wait=False)
    expect(node(tab, "s1")).to_have_attribute("data-status", "running")
    assert focused() == "send"
    tab.page.get_by_role("button", name="Stop").click()
    ended(tab, "stopped")
    assert focused() == "question"
    ask(tab, "plan: s1 = quick(a=question); s2 = slow(b=1)", wait=False)
    node(tab, "s2").press("Enter")
    assert focused() == "step-s2"
    ended(tab, "answered")
    assert focused() == "step-s2"
