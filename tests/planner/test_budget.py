"""The grammar and the parser's search write only plans within the request's budget."""

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
from tests.planner.grammar_walk import admits, admits_step, drawn, grammar
from tests.planner.helpers import SHOP

SETTINGS = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.data_too_large]
)
MOST = st.lists(st.integers(1, 3), min_size=6, max_size=6)
QUESTION = "how loud is my radio, and how heavy is my tent?"


def calls_of(most: Mapping[str, int]) -> Callable[[Plan], str]:
    """The budget of so many calls of each tool."""

    def beyond(plan: Plan) -> str:
        calls = Counter(plan.tools)
        return next((tool for tool, bound in most.items() if calls[tool] > bound), "")

    return beyond


def bounded(request: PlanRequest, most: list[int]) -> PlanRequest:
    tools = (name for name in request.toolbox.names if name != NO_EVIDENCE.name)
    bounds = dict(zip(tools, most, strict=False))
    return replace(request, excess=calls_of(bounds))


def test_grammar_writes_no_plan_beyond_the_budget_of_calls() -> None:
    at_the_bound = 0

    @SETTINGS
    @given(REQUESTS, MOST, st.integers(0, 2**32))
    def run(request: PlanRequest, most: list[int], seed: int) -> None:
        nonlocal at_the_bound
        plan = parse_plan(drawn(grammar().plan_matcher(bounded(request, most)), seed, on=0.95))
        request.validate(plan)
        assert not bounded(request, most).excess(plan)
        at_the_bound += bool(bounded(request, [n - 1 for n in most]).excess(plan))

    run()
    # The property would say nothing if hardly a plan reached its budget.
    assert at_the_bound >= 40


@SETTINGS
@given(REQUESTS, MOST, st.data())
def test_grammar_admits_valid_plans_within_the_budget_and_none_beyond_it(
    request: PlanRequest, most: list[int], data: st.DataObject
) -> None:
    plan, bound = data.draw(valid_plans(request)), bounded(request, most)
    within = not bound.excess(plan)
    assert admits(bound, str(plan)) == within
    lines = str(plan).split("\n")
    by_line = (admits_step(bound, plan.tools[:n], line) for n, line in enumerate(lines))
    assert all(by_line) == within


def priced(latency: float = 0.0, cost: float = 0.0) -> Toolbox:
    return Toolbox(
        tool if tool.name == "no_evidence" else replace(tool, latency=latency, cost=cost)
        for tool in SHOP
    )


@pytest.mark.parametrize(
    ("toolbox", "figure", "most"),
    [(priced(cost=0.4), "cost", 0.5), (priced(latency=1.0), "seconds", 1.5)],
)
def test_parser_search_keeps_cost_and_critical_path_within_the_budget(
    toolbox: Toolbox, figure: str, most: float
) -> None:
    def beyond(plan: Plan) -> str:
        return figure if getattr(plan.price(toolbox), figure) > most else ""

    parser = open_runtime()
    prepared = parser.prepare(toolbox, [])
    free, bound = (
        [write_plan(plan.steps, prepared.schema, message) for plan in plans]
        for message, plans in (
            parser.plans(prepared, QUESTION, {}, MAX_STEPS),
            parser.plans(prepared, QUESTION, {}, MAX_STEPS, beyond),
        )
    )
    assert any(map(beyond, free)), "without a budget the search goes beyond it"
    assert bound
    assert not any(map(beyond, bound))


def test_parser_search_keeps_calls_of_each_tool_within_the_budget() -> None:
    parser = open_runtime()
    prepared = parser.prepare(SHOP, [])
    for most in (1, 2):
        bound = calls_of({"own": most, "find": 0, "desk": 0})
        message, plans = parser.plans(prepared, QUESTION, {}, MAX_STEPS, bound)
        called = [write_plan(plan.steps, prepared.schema, message).tools for plan in plans]
        assert max(tools.count("own") for tools in called) == most
        assert not {"find", "desk"} & {tool for tools in called for tool in tools}
