"""Searches with relevance feedback in the shop: what a loop may change."""

from __future__ import annotations

from typing import Any

import pytest

from casewright.domains import OpenDomain, find_domain
from casewright.graph import Answer, RunContext, build_graph
from casewright.planner import CasePlanner
from casewright.serve.session.session import with_feedback
from casewright.stores.feedback import Candidate
from tests.domains.helpers import call, looped

CUSTOMER = "C001"
#: Each tool that searches, with what it is asked.
ASKED: dict[str, tuple[str, dict[str, str]]] = {
    "prod_search": ("a present for a child who loves building", {}),
    "prod_qna": ("How much memory does it have?", {"product_id": "P001"}),
    "review_summary": ("is the sound good?", {"product_id": "P011"}),
    "order_lookup": ("tablet", {}),
    "customer_support": ("How long do refunds take?", {}),
}


def sources(opened: OpenDomain, tool: str) -> list[str]:
    question, given = ASKED[tool]
    customer = CUSTOMER if tool == "order_lookup" else None
    return [row["source"] for row in call(opened, tool, question, customer, **given)]


@pytest.mark.parametrize("tool", ASKED)
def test_feedback_without_confirmed_hits_finds_the_same_as_a_single_search(
    shop: OpenDomain, tool: str
) -> None:
    found = sources(shop, tool)
    assert found
    assert sources(looped(shop, "shopping", lambda one: False), tool) == found


@pytest.mark.parametrize("tool", sorted(set(ASKED) - {"order_lookup"}))
def test_feedback_adds_confirmed_hits_to_those_of_a_single_search(
    shop: OpenDomain, tool: str
) -> None:
    found = sources(shop, tool)
    more = sources(looped(shop, "shopping", lambda one: True), tool)
    assert set(more) > set(found)
    assert len(set(more)) == len(more)


def test_feedback_keeps_hits_of_a_single_product_search_first(
    shop: OpenDomain,
) -> None:
    found = sources(shop, "prod_search")
    more = sources(looped(shop, "shopping", lambda one: True), "prod_search")
    assert more[: len(found)] == found


def test_feedback_rounds_judge_only_orders_of_the_customer(shop: OpenDomain) -> None:
    seen: list[Any] = []

    def confirms(one: Candidate) -> bool:
        seen.append(one.hit.case.metadata["customer"])
        return True

    call(looped(shop, "shopping", confirms), "order_lookup", "tablet", CUSTOMER)
    assert set(seen) == {CUSTOMER}


def test_rounds_of_the_shop_s_loop_are_events_of_the_run(shop: OpenDomain) -> None:
    opened = with_feedback(shop, find_domain("shopping"), "offline")
    graph = build_graph(opened.toolbox, CasePlanner(opened.plan_cases))
    asked: Any = {"question": "How long do refunds take?"}
    context = RunContext(scope={"customer": CUSTOMER})
    events: list[Any] = []
    state: dict[str, Any] = {}
    for mode, part in graph.stream(asked, context=context, stream_mode=["custom", "values"]):
        if mode == "custom":
            events.append(part)
        else:
            state = dict(part)
    told = [one["report"]["event"] for one in events if one["event"] == "step_report"]
    assert told[0] == "feedback_round"
    assert told[-1] == "feedback_ended"
    steps = Answer.from_state(state).steps
    assert [one["event"] for step in steps for one in step["reports"]] == told
