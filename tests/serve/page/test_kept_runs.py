"""Runs that were kept are opened again: a file, a thread, and what was asked on the page."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import expect

from casewright.graph.run_file import read_run
from tests.serve.helpers import GALAXY, one_line_error, run
from tests.serve.page.helpers import ask, edges, ended, node
from tests.serve.service.helpers import Served
from tests.support.browser import Tab


def test_run_that_ask_saved_is_shown_with_plan_evidence_and_answer(
    tab: Tab, own_home: Path
) -> None:
    file = own_home / "run.json"
    assert run(own_home, "ask", GALAXY, "--save", file).returncode == 0
    tab.page.get_by_text("Open a run").click()
    tab.page.set_input_files("#file", file)
    ended(tab, "answered")
    assert edges(tab) == {"question s1", "s1 s2", "s2 answer"}
    expect(node(tab, "s2")).to_contain_text("prod_qna")
    expect(tab.page.locator("#answer")).to_contain_text("8 GB")
    assert tab.page.locator(".evidence").count() == len(read_run(file).evidence)
    expect(tab.page.get_by_role("status")).to_have_text("A kept run: nothing was run again.")


def test_run_that_the_page_saves_is_what_casewright_show_shows(
    tab: Tab, tmp_path: Path, home: Path
) -> None:
    ask(tab, "plan: s1 = quick(a=question); s2 = broken(a=question)")
    with tab.page.expect_download() as saved:
        tab.page.get_by_role("button", name="Save this run").click()
    file = tmp_path / "saved.json"
    saved.value.save_as(file)
    shown = run(home, "show", file)
    assert shown.returncode == 0
    assert "s2 = broken(a=question)" in shown.stdout
    file.write_text(file.read_text(encoding="utf-8")[:-30], encoding="utf-8")
    assert "no saved run" in one_line_error(run(home, "show", file))


def test_answered_thread_is_opened_by_its_name(tab: Tab, plans: Served) -> None:
    with plans.client(None) as client:
        client.post("/ask", json={"question": "of yesterday", "thread_id": "kept"})
    tab.page.get_by_text("Open a run").click()
    name = tab.page.get_by_label("A thread of this service")
    name.fill("kept")
    name.press("Enter")
    ended(tab, "answered")
    expect(tab.page.locator("#asked")).to_have_text("of yesterday")
    expect(tab.page.locator("#answer")).to_contain_text("found for")
    name.fill("nobody's")
    name.press("Enter")
    expect(tab.page.get_by_role("alert")).not_to_be_empty()
    tab.forgive("status of 4")


def test_thread_that_waits_is_opened_and_replied_to(tab: Tab, plans: Served) -> None:
    with plans.client(None) as client:
        given = {"question": 'plan: s1 = asks(a="Which?")', "thread_id": "waiting"}
        assert client.post("/ask", json=given).status_code == 202
    tab.page.get_by_text("Open a run").click()
    tab.page.get_by_label("A thread of this service").fill("waiting")
    tab.page.get_by_label("A thread of this service").press("Enter")
    tab.page.get_by_label("Reply").fill("that one")
    tab.page.get_by_label("Reply").press("Enter")
    ended(tab, "answered")
    expect(tab.page.locator("#answer")).to_contain_text("the user says that one")


def test_answer_is_kept_as_a_case_where_the_service_keeps_any(tab: Tab, plans: Served) -> None:
    ask(tab, "what is kept?")
    tab.page.get_by_role("button", name="Keep this answer as a case").click()
    expect(tab.page.get_by_role("status")).to_contain_text("As a case: added.")
    with plans.client(None) as client:
        questions = [case["question"] for case in client.get("/cases").json()["cases"]]
    assert "what is kept?" in questions
