"""The case planner plans the queries of the shopping domain."""

from __future__ import annotations

import time
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from casewright.domains import OpenDomain, find_domain
from casewright.errors import InputError
from casewright.planner import AnnotatedQuery, CasePlanner, PlanRequest, QueryRecord, Reader
from tests.support.examples import at_most
from tests.support.shipped import shop_queries

QUERIES = shop_queries()
WORDS = sorted({word for query in QUERIES for word in query.query.split()})
TOOLS = ["prod_search", "prod_qna", "review_summary", "order_lookup", "shipment_status"]
QUESTIONS = st.one_of(
    st.text(max_size=60),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=14).map(" ".join),
    st.builds(
        lambda query, extra: query.query + extra, st.sampled_from(QUERIES), st.text(max_size=8)
    ),
)
CONTEXTS = st.sampled_from([{}, {"product_id": "p1"}, {"product_id": None}, {"page": "home"}])


def test_case_planner_gives_sampled_shop_queries_valid_plans_mostly_with_right_tools(
    shopping: OpenDomain, shopping_queries: list[AnnotatedQuery]
) -> None:
    planner = CasePlanner(shopping.plan_cases)
    planner.plan(PlanRequest("is it red", shopping.toolbox))
    correct = 0
    sample = shopping_queries[::120]
    for query in sample:
        request = query.record.request(shopping.toolbox)
        result = planner.plan(request)
        request.validate(result.plan)
        correct += result.plan.tools == query.plan.tools
    assert correct > 0.5 * len(sample)


def test_shipped_reader_calls_the_right_tools_for_most_measuring_queries(
    shopping: OpenDomain,
) -> None:
    shop = find_domain("shopping")
    assert shop.reader is not None
    planner = CasePlanner(None, Reader(shop.reader))
    queries = shop.measuring_queries()
    correct = 0
    for query in queries:
        request = query.record.request(shopping.toolbox)
        plan = planner.plan(request).plan
        request.validate(plan)
        correct += plan.tools == query.plan.tools or plan.tools in query.accept
    assert correct >= 0.85 * len(queries)


def test_case_planner_gives_any_shop_question_a_valid_plan(shopping: OpenDomain) -> None:
    planner = CasePlanner(shopping.plan_cases)
    fallbacks = []

    @settings(
        max_examples=at_most(150), deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    @given(QUESTIONS, CONTEXTS, st.lists(st.sampled_from(TOOLS), max_size=5))
    def run(question: str, context: dict[str, Any], removed: list[str]) -> None:
        toolbox = shopping.toolbox.without(*removed)
        try:
            request = PlanRequest(question, toolbox, context)
        except InputError:
            return
        result = planner.plan(request)
        request.validate(result.plan)
        assert not set(result.plan.tools) & set(removed)
        assert planner.plan(request).plan == result.plan
        fallbacks.append(bool(result.fallback))

    run()
    assert fallbacks.count(False) > len(fallbacks) / 2


def test_case_planner_plans_the_longest_questions_within_two_seconds(shopping: OpenDomain) -> None:
    planner = CasePlanner(shopping.plan_cases)
    planner.plan(PlanRequest("how big is my tent", shopping.toolbox))
    for question in ("how big is my tent " * 420, "a" * 8000, "?!. " * 2000, "a-" * 3999 + "a"):
        request = PlanRequest(question[:8000], shopping.toolbox)
        started = time.process_time()
        request.validate(planner.plan(request).plan)
        assert time.process_time() - started < 2


def test_case_planner_uses_no_context_identifier_without_a_context(
    shopping: OpenDomain, shopping_queries: list[AnnotatedQuery]
) -> None:
    planner = CasePlanner(shopping.plan_cases)
    on_page = [q for q in shopping_queries if "context." in str(q.plan)][:20]
    assert on_page
    for query in on_page:
        request = QueryRecord(query=query.query).request(shopping.toolbox)
        assert "context." not in str(planner.plan(request).plan)
