from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from casewright.domains.shopping.data import records
from tests.serve.helpers import GALAXY, Output, first_answer, result, run, run_process

Answer = dict[str, Any]
OWN_PHONE = next(
    f"orders:{order['id']}"
    for order in records("orders")
    if order["customer"] == "C001" and order["items"][0]["product_id"] == "P001"
)


@pytest.fixture(scope="module")
def galaxy(home: Path) -> Answer:
    answer: Answer = result(run(home, "ask", GALAXY, "--json"))
    return answer


@pytest.fixture(scope="module")
def galaxy_text(home: Path) -> Output:
    """Return the printed answer of ``ask`` in a new process."""
    return run_process(home, "ask", GALAXY)


def test_question_about_an_ordered_product_gets_a_plan_of_two_dependent_steps(
    galaxy: Answer,
) -> None:
    first, second = galaxy["plan"].split("\n")
    assert first.startswith("s1 = order_lookup(")
    assert second == "s2 = prod_qna(product_id=s1.product_id, query=question)"
    assert [(step["tool"], step["status"]) for step in galaxy["steps"]] == [
        ("order_lookup", "done"),
        ("prod_qna", "done"),
    ]


def test_answer_cites_the_order_and_the_fact(galaxy: Answer) -> None:
    cited_items = [item for item in galaxy["evidence"] if item["id"] in galaxy["citations"]]
    assert {item["tool"] for item in cited_items} == {"order_lookup", "prod_qna"}
    assert {OWN_PHONE, "facts:P001.2"} <= {item["source"] for item in cited_items}
    assert "8 GB" in galaxy["text"]
    assert all(f"[{item['id']}]" in galaxy["text"] for item in cited_items)


def test_every_citation_names_existing_evidence_and_evidence_ids_are_unique(galaxy: Answer) -> None:
    evidence_ids = [item["id"] for item in galaxy["evidence"]]
    assert len(set(evidence_ids)) == len(evidence_ids)
    assert galaxy["citations"]
    assert set(galaxy["citations"]) <= set(evidence_ids)


def test_json_answer_names_planner_and_generator_and_has_times(galaxy: Answer) -> None:
    assert galaxy["planner"]["name"] == "case"
    assert galaxy["planner"]["fallback"] == ""
    assert galaxy["generator"] == "extractive"
    assert galaxy["usage"]["planning_ms"] > 0
    assert galaxy["usage"]["execution_ms"] > 0
    assert galaxy["missing"] == []


def test_printed_answer_shows_plan_text_and_cited_evidence(galaxy_text: Output) -> None:
    assert galaxy_text.returncode == 0
    printed = " ".join(galaxy_text.stdout.split())
    assert printed.startswith("Plan ")
    assert "s2 = prod_qna(product_id=s1.product_id, query=question)" in printed
    assert "quoted, without a language model" in printed
    assert "Memory (RAM): 8 GB [E3]" in printed
    assert f"[E1] {OWN_PHONE} s1" in printed


def test_answer_with_built_stores_leaves_stderr_empty(galaxy_text: Output) -> None:
    assert galaxy_text.stderr == ""


def test_stdout_holds_only_the_result_while_the_stores_are_built() -> None:
    completed = first_answer()
    assert "Building the shopping stores" in completed.stderr
    answer = result(completed)
    assert answer["plan"] == "s1 = customer_support(query=question)"
    assert answer["citations"]


def test_answer_for_one_customer_contains_no_order_of_another_customer(home: Path) -> None:
    customer = "C002"
    completed = run(home, "ask", GALAXY, "--customer", customer, "--json")
    result(completed)
    other_orders = [order for order in records("orders") if order["customer"] != customer]
    assert len(other_orders) >= 7
    for order in other_orders:
        assert order["id"] not in completed.stdout
        assert order["parcel"]["tracking"] not in completed.stdout
        assert all(item["title"] not in completed.stdout for item in order["items"])


def test_plan_takes_the_product_from_the_context_of_the_open_page(home: Path) -> None:
    context = json.dumps({"product_id": "P021", "page": "product"})
    answer = result(run(home, "ask", "Do people like it?", "--context", context, "--json"))
    assert answer["plan"] == "s1 = review_summary(product_id=context.product_id, query=question)"
    assert answer["steps"][0]["arguments"]["product_id"] == "P021"
    review_ids = {review["id"] for review in records("reviews") if review["product_id"] == "P021"}
    sources = [item["source"] for item in answer["evidence"]]
    assert sources[0] == "reviews:P021"
    assert {source.removeprefix("reviews:") for source in sources[1:]} <= review_ids


def test_small_talk_is_answered_without_evidence(home: Path) -> None:
    answer = result(run(home, "ask", "Thank you, have a nice evening!", "--json"))
    assert answer["plan"] == "s1 = no_evidence()"
    assert answer["evidence"] == answer["citations"] == []


def test_question_with_markup_quotes_and_emoji_is_answered(home: Path) -> None:
    question = 'Is the "[bold]Dustin[/bold]" robot vacuum \\ any good? 🤖'
    completed = run(home, "ask", question)
    assert completed.returncode == 0, completed.stderr
    assert "s1 = " in completed.stdout
