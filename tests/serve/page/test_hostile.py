"""The page shows the text of tools, files and users as text, and runs none of it."""

from __future__ import annotations

from pathlib import Path

import httpx
from playwright.sync_api import Browser, Locator, expect

from tests.serve.page.helpers import ask, section, wait_for_state
from tests.serve.service.helpers import ACME, Served, served
from tests.serve.service.server_process import HOSTILE
from tests.support.browser import Tab, opened


def answer_link(tab: Tab) -> Locator:
    return tab.page.locator("#answer a").first


def test_hostile_text_in_evidence_source_and_question_is_shown_as_text(tab: Tab) -> None:
    ask(tab, '<img src=x onerror="alert(9)"> plan: s1 = hostile(a=question)')
    page = tab.page
    assert HOSTILE in page.locator(".evidence .text").inner_text()
    assert "<b onclick=alert(4)>source</b>" in page.locator(".evidence header").inner_text()
    expect(page.locator("#asked")).to_contain_text('<img src=x onerror="alert(9)">')
    assert page.locator("#run :is(img, script, style, iframe, b[onclick])").count() == 0
    # Evidence that changes the writing direction does not change that of a citation.
    link = answer_link(tab)
    assert link.evaluate("node => getComputedStyle(node).unicodeBidi") == "isolate"
    assert link.evaluate("node => node.previousSibling.nodeName") == "BDI"
    # A citation that the evidence forges is no link.
    answer = page.locator("#answer")
    expect(answer).to_contain_text("E7")
    assert [link.inner_text() for link in answer.locator("a").all()] == ["[E1]"]


def test_hostile_saved_run_is_refused_or_shown_as_text(tab: Tab) -> None:
    question = "<script>alert(5)</script> plan: s1 = hostile(a=question)"
    ask(tab, question)
    with tab.page.expect_download() as download:
        tab.page.get_by_role("button", name="Save this run").click()
    text = download.value.path().read_text(encoding="utf-8")
    tab.page.get_by_text("Open a run").click()
    tab.page.set_input_files(
        "#file",
        {
            "name": "<script>alert(6)</script>.json",
            "mimeType": "application/json",
            "buffer": text.encode(),
        },
    )
    expect(tab.page.locator("#asked")).to_have_text(question)
    assert HOSTILE in section(tab, "s1").locator(".evidence .text").inner_text()
    for damaged in (
        text[:-40],
        "[]",
        text.replace('"done"', '"<b>"'),
        text.replace("s1 = ", "s1 <b> "),
        "\ud800",
        "s1 = ",
    ):
        tab.page.set_input_files(
            "#file",
            {
                "name": "run.json",
                "mimeType": "application/json",
                "buffer": damaged.encode("utf-8", "surrogatepass"),
            },
        )
        expect(tab.page.get_by_role("alert")).to_contain_text("The file is")
        expect(tab.page.locator("#asked")).to_have_text(question)
    tab.remove_problems("status of 422")


def test_page_allows_no_other_host_no_inline_script_and_no_html_from_text(
    tab: Tab, plans: Served
) -> None:
    policy = httpx.get(plans.url).headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    set_html = """() => {
        const element = document.createElement("div");
        try { element.innerHTML = "<b>x</b>"; } catch (error) { return error.name; }
        return element.innerHTML;
    }"""
    assert tab.page.evaluate(set_html) == "TypeError"
    tab.remove_problems("TrustedHTML")
    fetch_other_host = "() => fetch('https://other.invalid/').catch(error => error.name)"
    assert tab.page.evaluate(fetch_other_host) == "TypeError"
    tab.remove_problems("Content Security Policy|connect-src")


def test_page_asks_for_a_required_token_and_does_not_store_it(
    browser: Browser, tmp_path: Path
) -> None:
    with (
        served(tmp_path, scopes={"customer": ["C1", "C2"]}) as service,
        opened(browser, f"{service.url}/") as tab,
    ):
        field = tab.page.get_by_label("Bearer token")
        expect(field).to_be_focused()
        expect(tab.page.get_by_role("alert")).to_contain_text("Send a known token")
        field.fill(ACME)
        field.press("Tab")
        expect(tab.page.locator("#about")).to_contain_text("tests:")
        # The service does not list its customers but requires one, so the field is unfolded.
        customer = tab.page.get_by_label("customer")
        expect(customer).to_have_value("")
        customer.fill("C2")
        ask(tab, "how much?")
        wait_for_state(tab, "answered")
        expect(tab.page.locator("#answer")).to_contain_text("found for acme C2")
        assert ACME not in tab.page.url
        read_storage = "() => [localStorage.length, sessionStorage.length, document.cookie]"
        assert tab.page.evaluate(read_storage) == [0, 0, ""]
        tab.remove_problems("status of 401")
