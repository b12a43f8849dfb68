"""Searches with relevance feedback in the shop and in the legal domain: what a loop may change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from casewright.domains import OpenDomain, find_domain
from casewright.graph import Answer, RunContext, build_graph
from casewright.graph.feedback import FeedbackSearch
from casewright.planner import CasePlanner
from casewright.serve.session.session import with_feedback
from casewright.stores import CaseStore
from casewright.stores.feedback import Candidate, JudgeRequest, Strategy, Verdicts
from casewright.tools import Search
from tests.domains.helpers import call

CUSTOMER = "C001"
#: Each tool that searches, with what it is asked.
ASKED: dict[str, tuple[str, dict[str, str]]] = {
    "prod_search": ("a present for a child who loves building", {}),
    "prod_qna": ("How much memory does it have?", {"product_id": "P001"}),
    "review_summary": ("is the sound good?", {"product_id": "P011"}),
    "order_lookup": ("tablet", {}),
    "customer_support": ("How long do refunds take?", {}),
    "case_search": ("Can a note on a telephone be a valid will?", {}),
    "act_cases": ("unlawfully obtained evidence", {"act": "Evidence Act 2001"}),
}


@dataclass(frozen=True)
class Marks:
    """A judge that confirms what a function does."""

    confirms: Callable[[Candidate], bool]
    name: str = "marks"

    def judge(self, request: JudgeRequest) -> Verdicts:
        return Verdicts(frozenset(one.id for one in request.candidates if self.confirms(one)))


def chosen_domain(tool: str) -> str:
    return "legal" if tool in ("case_search", "act_cases") else "shopping"


@pytest.fixture
def opened(tool: str, request: pytest.FixtureRequest) -> OpenDomain:
    found: OpenDomain = request.getfixturevalue({"legal": "legal"}.get(chosen_domain(tool), "shop"))
    return found


def looped(opened: OpenDomain, name: str, confirms: Callable[[Candidate], bool]) -> OpenDomain:
    def make(store: CaseStore, strategy: Strategy, weights: Mapping[str, float] | None) -> Search:
        return FeedbackSearch(store, Marks(confirms), strategy, weights=weights, fallback=False)

    looping = find_domain(name).looping
    assert looping is not None
    return looping(opened, make)


def sources(opened: OpenDomain, tool: str) -> list[str]:
    question, given = ASKED[tool]
    customer = CUSTOMER if tool == "order_lookup" else None
    return [row["source"] for row in call(opened, tool, question, customer, **given)]


@pytest.mark.parametrize("tool", ASKED)
def test_where_nothing_is_confirmed_it_finds_just_what_a_single_search_does(
    opened: OpenDomain, tool: str
) -> None:
    found = sources(opened, tool)
    assert found
    assert sources(looped(opened, chosen_domain(tool), lambda one: False), tool) == found


@pytest.mark.parametrize("tool", sorted(set(ASKED) - {"order_lookup"}))
def test_what_is_confirmed_is_found_beside_all_that_a_single_search_finds(
    opened: OpenDomain, tool: str
) -> None:
    found = sources(opened, tool)
    more = sources(looped(opened, chosen_domain(tool), lambda one: True), tool)
    assert set(more) > set(found)
    assert len(set(more)) == len(more)


@pytest.mark.parametrize("tool", ["prod_search", "case_search"])
def test_what_a_single_search_finds_stays_first_where_the_next_step_takes_it(
    opened: OpenDomain, tool: str
) -> None:
    found = sources(opened, tool)
    more = sources(looped(opened, chosen_domain(tool), lambda one: True), tool)
    assert more[: len(found)] == found


def test_no_round_looks_at_orders_of_another_customer(shop: OpenDomain) -> None:
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
