"""Saved runs and stored threads are opened on the page, and answers are stored as cases."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import httpx
from playwright.sync_api import expect

from casewright.graph.run_file import read_run
from tests.serve.helpers import GALAXY, one_line_error, run
from tests.serve.page.helpers import ask, edges, node, wait_for_state
from tests.serve.service.helpers import Served
from tests.support.browser import Tab
from tests.support.waiting import until


def test_page_shows_plan_evidence_and_answer_of_a_run_that_ask_saved(
    tab: Tab, own_home: Path
) -> None:
    file = own_home / "run.json"
    assert run(own_home, "ask", GALAXY, "--save", file).returncode == 0
    tab.page.get_by_text("Open a run").click()
    tab.page.set_input_files("#file", file)
    wait_for_state(tab, "answered")
    expect(tab.page.locator("#asked")).to_have_text(GALAXY)
    assert edges(tab) == {"question s1", "s1 s2", "s2 answer"}
    expect(node(tab, "s2")).to_contain_text("prod_qna")
    expect(tab.page.locator("#answer")).to_contain_text("8 GB")
    assert tab.page.locator(".evidence").count() == len(read_run(file).answer.evidence)
    expect(tab.page.locator("#status")).to_have_text("A saved run: nothing was run again.")


def test_casewright_show_reads_a_run_that_the_page_saved(
    tab: Tab, tmp_path: Path, home: Path
) -> None:
    ask(tab, "plan: s1 = quick(a=question); s2 = broken(a=question)")
    with tab.page.expect_download() as download:
        tab.page.get_by_role("button", name="Save this run").click()
    file = tmp_path / "saved.json"
    download.value.save_as(file)
    completed = run(home, "show", file)
    assert completed.returncode == 0
    assert "s2 = broken(a=question)" in completed.stdout
    file.write_text(file.read_text(encoding="utf-8")[:-30], encoding="utf-8")
    assert "not a saved run" in one_line_error(run(home, "show", file))


def test_answered_thread_is_opened_by_its_name(tab: Tab, plans: Served) -> None:
    with plans.client(None) as client:
        client.post("/ask", json={"question": "of yesterday", "thread_id": "kept"})
    tab.page.get_by_text("Open a run").click()
    name = tab.page.get_by_label("A thread of this service")
    name.fill("kept")
    name.press("Enter")
    wait_for_state(tab, "answered")
    expect(tab.page.locator("#asked")).to_have_text("of yesterday")
    expect(tab.page.locator("#answer")).to_contain_text("found for")
    name.fill("unknown")
    name.press("Enter")
    expect(tab.page.get_by_role("alert")).not_to_be_empty()
    tab.remove_problems("status of 4")


def test_page_opens_a_waiting_thread_and_sends_its_reply(tab: Tab, plans: Served) -> None:
    with plans.client(None) as client:
        plan = 'plan: s1 = quick(a=question); s2 = asks(a="Which?")'
        request = {"question": plan, "thread_id": "waiting"}
        assert client.post("/ask", json=request).status_code == 202
    tab.page.get_by_text("Open a run").click()
    tab.page.get_by_label("A thread of this service").fill("waiting")
    tab.page.get_by_label("A thread of this service").press("Enter")
    expect(node(tab, "s1")).to_have_attribute("data-status", "done")
    expect(node(tab, "s2")).to_contain_text("waits for a reply")
    tab.page.get_by_label("Reply").fill("that one")
    tab.page.get_by_label("Reply").press("Enter")
    wait_for_state(tab, "answered")
    expect(tab.page.locator("#answer")).to_contain_text("the user says that one")
    expect(node(tab, "s2")).to_have_attribute("data-status", "done")
    for link in tab.page.locator("#answer a").all():
        assert tab.page.locator(str(link.get_attribute("href"))).count() == 1


def test_page_opens_an_interrupted_thread_and_resumes_it(tab: Tab, plans: Served) -> None:
    with plans.client(None) as client, contextlib.suppress(httpx.ReadTimeout):
        request = {"question": "plan: s1 = quick(a=question); s2 = slow(b=2)", "thread_id": "left"}
        client.post("/ask", json=request, timeout=1)
    with plans.client(None) as client:
        until(lambda: client.get("/threads/left").json()["status"] == "interrupted", 10)
    tab.page.get_by_text("Open a run").click()
    tab.page.get_by_label("A thread of this service").fill("left")
    tab.page.get_by_label("A thread of this service").press("Enter")
    tab.page.get_by_role("button", name="Resume it").click()
    expect(tab.page.locator("#answer")).to_contain_text("slept", timeout=20_000)
    wait_for_state(tab, "answered")
    expect(node(tab, "s2")).to_have_attribute("data-status", "done")


def test_reply_stays_in_its_field_when_the_service_refuses_it(tab: Tab, plans: Served) -> None:
    with plans.client(None) as client:
        request = {"question": 'plan: s1 = asks(a="Which?")', "thread_id": "gone"}
        client.post("/ask", json=request)
        tab.page.get_by_text("Open a run").click()
        tab.page.get_by_label("A thread of this service").fill("gone")
        tab.page.get_by_label("A thread of this service").press("Enter")
        tab.page.get_by_label("Reply").fill("a long reply")
        client.delete("/threads/gone")
    tab.page.get_by_label("Reply").press("Enter")
    expect(tab.page.get_by_role("alert")).to_contain_text("no such thread")
    expect(tab.page.get_by_label("Reply")).to_have_value("a long reply")
    tab.remove_problems("status of 404")


def test_page_shows_and_saves_large_integers_unchanged(
    tab: Tab, tmp_path: Path, own_home: Path
) -> None:
    assert run(own_home, "ask", GALAXY, "--save", own_home / "run.json").returncode == 0
    text = (own_home / "run.json").read_text(encoding="utf-8")
    saved_run = json.loads(text)
    saved_run["answer"]["steps"][0]["rows"][0]["number"] = 12345678901234567890
    (own_home / "run.json").write_text(json.dumps(saved_run), encoding="utf-8")
    tab.page.get_by_text("Open a run").click()
    tab.page.set_input_files("#file", own_home / "run.json")
    tab.page.get_by_text("as returned").first.click()
    expect(tab.page.locator("#steps pre").first).to_contain_text("12345678901234567890")
    with tab.page.expect_download() as download:
        tab.page.get_by_role("button", name="Save this run").click()
    download.value.save_as(tmp_path / "again.json")
    assert "12345678901234567890" in (tmp_path / "again.json").read_text(encoding="utf-8")


def test_button_stores_an_answer_as_a_case(tab: Tab, plans: Served) -> None:
    ask(tab, "what is kept?")
    tab.page.get_by_role("button", name="Keep this answer as a case").click()
    expect(tab.page.locator("#kept")).to_contain_text("As a case: added.")
    with plans.client(None) as client:
        questions = [case["question"] for case in client.get("/cases").json()["cases"]]
    assert "what is kept?" in questions
