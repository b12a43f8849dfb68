"""The grammar and the parser's search write only plans within the budget of the request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from casewright.planner import MAX_STEPS, Plan, PlanRequest, parse_plan
from casewright.planner.parser.plan_reading import write_plan
from casewright.planner.parser.runtime import open_runtime
from casewright.tools import NO_EVIDENCE, Toolbox
from tests.planner.grammar_strategies import REQUESTS, valid_plans
from tests.planner.grammar_walk import admits, admits_step, draw_text, grammar
from tests.planner.helpers import SHOP

SETTINGS = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.data_too_large]
)
CALL_LIMITS = st.lists(st.integers(1, 3), min_size=6, max_size=6)
QUESTION = "how loud is my radio, and how heavy is my tent?"


def call_budget(limits: Mapping[str, int]) -> Callable[[Plan], str]:
    """Return a budget that limits the calls of each tool."""

    def excess(plan: Plan) -> str:
        calls = Counter(plan.tools)
        return next((tool for tool, limit in limits.items() if calls[tool] > limit), "")

    return excess


def with_budget(request: PlanRequest, limits: list[int]) -> PlanRequest:
    tools = (name for name in request.toolbox.names if name != NO_EVIDENCE.name)
    return replace(request, excess=call_budget(dict(zip(tools, limits, strict=False))))


def test_grammar_writes_no_plan_beyond_the_budget_of_calls() -> None:
    at_the_limit = 0

    @SETTINGS
    @given(REQUESTS, CALL_LIMITS, st.integers(0, 2**32))
    def run(request: PlanRequest, limits: list[int], seed: int) -> None:
        nonlocal at_the_limit
        bounded = with_budget(request, limits)
        plan = parse_plan(draw_text(grammar().plan_matcher(bounded), seed, go_on=0.95))
        request.validate(plan)
        assert not bounded.excess(plan)
        at_the_limit += bool(with_budget(request, [n - 1 for n in limits]).excess(plan))

    run()
    # The property says nothing about a budget that no plan reaches.
    assert at_the_limit >= 40


@SETTINGS
@given(REQUESTS, CALL_LIMITS, st.data())
def test_grammar_admits_valid_plans_within_the_budget_and_none_beyond_it(
    request: PlanRequest, limits: list[int], data: st.DataObject
) -> None:
    plan, bounded = data.draw(valid_plans(request)), with_budget(request, limits)
    is_within = not bounded.excess(plan)
    assert admits(bounded, str(plan)) == is_within
    lines = str(plan).split("\n")
    admitted_lines = (admits_step(bounded, plan.tools[:n], line) for n, line in enumerate(lines))
    assert all(admitted_lines) == is_within


def priced_shop(latency: float = 0.0, cost: float = 0.0) -> Toolbox:
    return Toolbox(
        tool if tool.name == "no_evidence" else replace(tool, latency=latency, cost=cost)
        for tool in SHOP
    )


@pytest.mark.parametrize(
    ("toolbox", "figure", "limit"),
    [(priced_shop(cost=0.4), "cost", 0.5), (priced_shop(latency=1.0), "seconds", 1.5)],
)
def test_parser_search_keeps_cost_and_critical_path_within_the_budget(
    toolbox: Toolbox, figure: str, limit: float
) -> None:
    def excess(plan: Plan) -> str:
        return figure if getattr(plan.price(toolbox), figure) > limit else ""

    parser = open_runtime()
    prepared = parser.prepare(toolbox, [])
    unbounded, bounded = (
        [write_plan(plan.steps, prepared.schema, message) for plan in plans]
        for message, plans in (
            parser.plans(prepared, QUESTION, {}, MAX_STEPS),
            parser.plans(prepared, QUESTION, {}, MAX_STEPS, excess),
        )
    )
    assert any(map(excess, unbounded)), "without a budget the search exceeds it"
    assert bounded
    assert not any(map(excess, bounded))


def test_parser_search_keeps_calls_of_each_tool_within_the_budget() -> None:
    parser = open_runtime()
    prepared = parser.prepare(SHOP, [])
    for limit in (1, 2):
        budget = call_budget({"own": limit, "find": 0, "desk": 0})
        message, plans = parser.plans(prepared, QUESTION, {}, MAX_STEPS, budget)
        sequences = [write_plan(plan.steps, prepared.schema, message).tools for plan in plans]
        assert max(tools.count("own") for tools in sequences) == limit
        assert not {"find", "desk"} & {tool for tools in sequences for tool in tools}
