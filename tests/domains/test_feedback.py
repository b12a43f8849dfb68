"""Tests of searches with relevance feedback in the shop."""

from __future__ import annotations

from typing import Any

import pytest

from casewright.domains import OpenDomain, find_domain
from casewright.graph import Answer, RunContext, build_graph
from casewright.planner import CasePlanner
from casewright.serve.session.session import with_feedback
from casewright.stores.feedback import Candidate
from tests.domains.helpers import call, with_loop

CUSTOMER = "C001"
#: The question and the arguments for each tool that searches.
SEARCHES: dict[str, tuple[str, dict[str, str]]] = {
    "prod_search": ("a present for a child who loves building", {}),
    "prod_qna": ("How much memory does it have?", {"product_id": "P001"}),
    "review_summary": ("is the sound good?", {"product_id": "P011"}),
    "order_lookup": ("tablet", {}),
    "customer_support": ("How long do refunds take?", {}),
}


def sources(opened: OpenDomain, tool: str) -> list[str]:
    question, arguments = SEARCHES[tool]
    customer = CUSTOMER if tool == "order_lookup" else None
    return [row["source"] for row in call(opened, tool, question, customer, **arguments)]


@pytest.mark.parametrize("tool", SEARCHES)
def test_feedback_without_confirmed_hits_finds_the_same_as_a_single_search(
    shop: OpenDomain, tool: str
) -> None:
    single = sources(shop, tool)
    assert single
    assert sources(with_loop(shop, "shopping", lambda candidate: False), tool) == single


@pytest.mark.parametrize("tool", sorted(set(SEARCHES) - {"order_lookup"}))
def test_feedback_adds_confirmed_hits_to_those_of_a_single_search(
    shop: OpenDomain, tool: str
) -> None:
    single = sources(shop, tool)
    extended = sources(with_loop(shop, "shopping", lambda candidate: True), tool)
    assert set(extended) > set(single)
    assert len(set(extended)) == len(extended)


def test_feedback_keeps_hits_of_a_single_product_search_first(
    shop: OpenDomain,
) -> None:
    single = sources(shop, "prod_search")
    extended = sources(with_loop(shop, "shopping", lambda candidate: True), "prod_search")
    assert extended[: len(single)] == single


def test_feedback_rounds_judge_only_orders_of_the_customer(shop: OpenDomain) -> None:
    customers: list[Any] = []

    def confirms(candidate: Candidate) -> bool:
        customers.append(candidate.hit.case.metadata["customer"])
        return True

    call(with_loop(shop, "shopping", confirms), "order_lookup", "tablet", CUSTOMER)
    assert set(customers) == {CUSTOMER}


def test_rounds_of_the_shop_s_loop_are_events_of_the_run(shop: OpenDomain) -> None:
    opened = with_feedback(shop, find_domain("shopping"), "offline")
    graph = build_graph(opened.toolbox, CasePlanner(opened.plan_cases))
    request: Any = {"question": "How long do refunds take?"}
    context = RunContext(scope={"customer": CUSTOMER})
    events: list[Any] = []
    state: dict[str, Any] = {}
    for mode, part in graph.stream(request, context=context, stream_mode=["custom", "values"]):
        if mode == "custom":
            events.append(part)
        else:
            state = dict(part)
    kinds = [event["report"]["event"] for event in events if event["event"] == "step_report"]
    assert kinds[0] == "feedback_round"
    assert kinds[-1] == "feedback_ended"
    steps = Answer.from_state(state).steps
    assert [event["event"] for step in steps for event in step["reports"]] == kinds
