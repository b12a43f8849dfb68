"""No run exceeds its budget, whatever its planner returns and however its tools fail."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, RetryPolicy, interrupt

from casewright.errors import InputError, ToolError
from casewright.graph import Answer, Limits, RunContext, build_graph
from casewright.graph.random_plans import MAX_NEEDS, random_dag
from casewright.planner import Plan, PlanRequest, PlanResult, Step, parse_plan
from casewright.planner.fixed import FixedPlanner
from casewright.tools import CallContext, Toolbox, ToolSpec, tool_from_function
from tests.graph.helpers import QUESTION, Arguments, Ask, graph_of, tool
from tests.support.examples import at_most

DECLARED: dict[str, dict[str, Any]] = {
    "work": {"latency": 0.05, "cost": 0.1, "tokens": 7},
    "other": {"latency": 0.4, "cost": 0.03, "tokens": 90},
    "free": {},
}
RETRY_AT_ONCE = RetryPolicy(max_attempts=3, initial_interval=0.0)
BUDGETS = st.fixed_dictionaries(
    {},
    optional={
        "calls": st.integers(1, 10),
        "seconds": st.floats(0.01, 2.0),
        "cost": st.floats(0.01, 0.8),
        "tokens": st.integers(1, 400),
        "tool_calls": st.dictionaries(st.sampled_from(list(DECLARED)), st.integers(0, 3)),
    },
)


def counting_tool(name: str, calls: Counter[str], rng: random.Random) -> ToolSpec:
    """Return a tool that counts its calls, and sometimes raises an error that is retried."""

    async def run(arguments: Arguments, context: CallContext) -> str:
        calls[name] += 1
        await asyncio.sleep(0)
        if rng.random() < 0.4:
            raise ConnectionError("try again")
        return "found"

    takes = ("seconds", *(f"in{i}" for i in range(MAX_NEEDS)))
    base = tool(name, None, run, takes=takes)
    return ToolSpec(name, "", base.parameters, base.results, run_async=run, **DECLARED[name])


def random_plan(rng: random.Random) -> Plan:
    steps = random_dag(rng, shortest=0.0, longest=0.0, max_steps=8).plan().steps
    return Plan(tuple(Step(rng.choice(list(DECLARED)), step.arguments) for step in steps))


def check_run_stays_within_budget(seed: int, budget: dict[str, Any]) -> None:
    rng, calls = random.Random(seed), Counter[str]()
    plan = random_plan(rng)
    tools = [counting_tool(name, calls, rng) for name in DECLARED]
    graph = graph_of(tools, str(plan), retry=RETRY_AT_ONCE)
    run = graph.ainvoke({"question": QUESTION}, context=RunContext(limits=budget))
    answer = Answer.from_state(asyncio.run(run))
    called_plan = Plan(tuple(Step(name) for name in calls.elements()))
    price = called_plan.price(Toolbox(tools))
    assert not Limits().within({**budget, "seconds": 99.0}).excess(price)
    executed_plan = parse_plan(answer.plan)
    assert (executed_plan.price(Toolbox(tools)).seconds or 0) <= budget.get("seconds", 99.0)
    left_out = [line for line in answer.planner["left_out"] if "hidden from" not in line]
    assert set(answer.planner["left_out"]) <= set(answer.missing)
    steps = [step for step in answer.steps if step["tool"] != "no_evidence"]
    assert len(steps) + len(left_out) == len(plan.steps)
    excess = Limits().within(budget).excess(plan.price(Toolbox(tools)))
    assert bool(left_out) == bool(excess)
    for step in steps:
        # Its inputs are in the plan, so that only a failed step can cause a skip.
        assert step["status"] in ("done", "failed") or "which ended" in step["error"]


@settings(max_examples=at_most(60), deadline=None)
@given(st.integers(0, 2**32), BUDGETS)
def test_run_of_a_random_plan_stays_within_its_budget(seed: int, budget: dict[str, Any]) -> None:
    check_run_stays_within_budget(seed, budget)


@pytest.mark.slow
@settings(max_examples=2000, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32), BUDGETS)
def test_runs_of_2000_random_plans_stay_within_their_budgets(
    seed: int, budget: dict[str, Any]
) -> None:
    check_run_stays_within_budget(seed, budget)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_attempts_before_an_interrupt_count_towards_the_budget_after_it(mode: str) -> None:
    calls: Counter[str] = Counter()

    def flaky(arguments: Arguments, context: CallContext) -> str:
        calls["flaky"] += 1
        if calls["flaky"] == 1:
            raise ConnectionError("try again")
        return "found"

    def asks(arguments: Arguments, context: CallContext) -> str:
        interrupt("go on?")
        calls["asks"] += 1
        raise ConnectionError("try again")

    tools = [tool("flaky", flaky), tool("asks", asks)]
    plan = "s1 = flaky()\ns2 = asks(a=s1.value)"
    graph = graph_of(tools, plan, checkpointer=InMemorySaver(), retry=RETRY_AT_ONCE, calls=3)
    config: Any = {"configurable": {"thread_id": "one"}}
    for inputs in ({"question": QUESTION}, Command(resume="yes")):
        if mode == "sync":
            state = graph.invoke(inputs, config)
        else:
            state = asyncio.run(graph.ainvoke(inputs, config))
    assert [step["attempts"] for step in Answer.from_state(state).steps] == [2, 1]
    assert calls == {"flaky": 2, "asks": 1}


def find(query: str) -> str:
    """Finds."""
    return query


def read(page: str) -> str:
    """Reads."""
    return page


ANY_SOURCE = ("literal", "question", "step")
FIND = tool_from_function(find, sources={"query": ANY_SOURCE}, latency=0.5, cost=0.2, tokens=10)
READ = tool_from_function(read, sources={"page": ANY_SOURCE}, latency=0.25, cost=0.1)
TOOLS = Toolbox([FIND, READ])
PLAN = """\
s1 = find(query=question)
s2 = find(query="b")
s3 = read(page=s1.evidence)
s4 = read(page=s2.evidence)"""


def run_with_limits(limits: Any, plan: str = PLAN, ask: Ask | None = None) -> Answer:
    graph = build_graph(TOOLS, FixedPlanner(parse_plan(plan)))
    context = RunContext(limits=limits)
    if ask is not None:
        return ask(graph, context=context)
    return Answer.from_state(graph.invoke({"question": QUESTION}, context=context))


def test_plan_price_counts_calls_critical_path_and_cost_of_all_attempts() -> None:
    price = parse_plan(PLAN).price(TOOLS, attempts=2)
    assert price.calls == {"find": 2, "read": 2}
    assert price.seconds == 0.75
    assert price.cost == pytest.approx(1.2)
    assert price.tokens == 40
    assert price.undeclared == {"tokens": ("read",)}
    assert str(price) == (
        "4 calls (find ×2, read ×2); about 0.75 s; cost at most 1.2; at most 40 tokens; "
        "no tokens of read"
    )


def test_plan_price_is_none_for_undeclared_figures_except_measured_latency() -> None:
    toolbox = Toolbox([tool_from_function(find, sources={"query": ANY_SOURCE})])
    plan = parse_plan("s1 = find(query=question)")
    assert (price := plan.price(toolbox)).seconds is price.cost is price.tokens is None
    assert plan.price(toolbox, measured={"find": 0.3}).seconds == 0.3
    assert plan.price(TOOLS, measured={"find": 9.0}).seconds == 0.5


def test_plan_without_tool_calls_has_a_price_of_zero() -> None:
    price = parse_plan("s1 = no_evidence()").price(TOOLS)
    assert (price.calls, price.seconds, price.cost, price.tokens) == ({}, 0, 0, 0)


def test_graph_uses_latency_measured_in_earlier_runs_for_the_price() -> None:
    undeclared = Toolbox([tool_from_function(find, sources={"query": ANY_SOURCE})])
    graph = build_graph(undeclared, FixedPlanner(parse_plan("s1 = find(query=question)")))
    first, second = (
        Answer.from_state(graph.invoke({"question": QUESTION})).planner["price"] for _ in range(2)
    )
    assert first["seconds"] is None
    assert second["seconds"] > 0


@pytest.mark.parametrize(
    ("budget", "expected_tools"),
    [
        ({"calls": 3}, ["find", "find", "read"]),
        ({"seconds": 0.5}, ["find", "find"]),
        ({"cost": 0.3}, ["find", "read"]),
        ({"tool_calls": {"find": 1}}, ["find", "read"]),
        ({"tool_calls": {"find": 0}}, ["no_evidence"]),
    ],
)
def test_run_leaves_out_steps_beyond_the_budget_and_steps_that_need_them(
    ask: Ask, budget: dict[str, Any], expected_tools: list[str]
) -> None:
    answer = run_with_limits(budget, ask=ask)
    assert [step["tool"] for step in answer.steps] == expected_tools
    assert all(step["status"] != "skipped" for step in answer.steps)


def test_answer_lists_steps_left_out_for_the_budget_with_reasons() -> None:
    answer = run_with_limits({"tool_calls": {"find": 1}})
    assert (
        answer.missing
        == answer.planner["left_out"]
        == [
            "s2 (find) was left out for the budget: calls of find 2, at most 1.",
            "s4 (read) was left out for the budget: it needs s2.",
        ]
    )
    assert "left out for the budget" in answer.text


def test_planner_gets_only_the_steps_and_tools_within_the_budget() -> None:
    requests: list[PlanRequest] = []

    class RecordingPlanner(FixedPlanner):
        async def aplan(self, request: PlanRequest) -> PlanResult:
            return self.plan(request)

        def plan(self, request: PlanRequest) -> PlanResult:
            requests.append(request)
            return super().plan(request)

    planner = RecordingPlanner(parse_plan("s1 = no_evidence()"))
    context = RunContext(limits={"calls": 2, "cost": 0.15}, planner=planner)
    build_graph(TOOLS, planner).invoke({"question": QUESTION}, context=context)
    assert requests[0].max_steps == 2
    assert requests[0].toolbox.names == ("read", "no_evidence")


def test_request_cannot_raise_the_budget_of_the_graph() -> None:
    graph_limits = Limits(calls=2, cost=1.0, tool_calls={"find": 1})
    limits = graph_limits.within({"calls": 9, "cost": 0.5, "tool_calls": {"find": 4, "read": 2}})
    assert limits.budget() == {"calls": 2, "cost": 0.5, "tool_calls": {"find": 1, "read": 2}}


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"calls": 0}, "calls=0. Give a whole number above 0"),
        ({"calls": 1.5}, "calls=1.5"),
        ({"cost": float("nan")}, "cost=nan. Give a number above 0"),
        ({"tool_calls": {"find": -1}}, "a whole number for each tool's name"),
        ({"tool_calls": 3}, "tool_calls is 3"),
    ],
)
def test_invalid_budget_is_refused_and_the_limit_is_named(limits: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        run_with_limits(limits)


@pytest.mark.parametrize("figure", [{"latency": -1.0}, {"cost": float("inf")}, {"tokens": -5}])
def test_tool_with_an_impossible_latency_cost_or_token_count_is_refused(figure: Any) -> None:
    with pytest.raises(ToolError, match="from 0 up"):
        tool_from_function(find, **figure)
