"""The scope reaches the tools, and only the caller can set it."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

import pytest
from langchain_core.tools import InjectedToolArg
from langchain_core.tools import tool as langchain_tool

from casewright.errors import PlanError
from casewright.graph import Answer, RunContext
from casewright.planner import PlanRequest, parse_plan
from casewright.planner.fixed import FixedPlanner
from casewright.tools import CallContext, Toolbox, tool_from_function, tool_from_langchain
from tests.graph.helpers import QUESTION, Arguments, Ask, graph_of, tool, values

ORDERS = {"C1": "order of C1", "C2": "order of C2"}


@langchain_tool
def orders(query: str, customer: Annotated[str, InjectedToolArg]) -> str:
    """Find a customer's orders."""
    return ORDERS[customer]


def own_orders(query: str, who: CallContext) -> str:
    """Find a customer's orders."""
    return ORDERS[who.scope["customer"]]


TOOLS = [
    tool_from_langchain(orders, results=("value",)),
    tool_from_function(own_orders, results=("value",)),
]


@pytest.mark.parametrize("name", ["orders", "own_orders"])
@pytest.mark.parametrize("form", [RunContext, dict], ids=["object", "mapping"])
def test_scope_of_the_run_context_reaches_the_tools(ask: Ask, form: Any, name: str) -> None:
    graph = graph_of(TOOLS, f"s1 = {name}(query=question)")
    for customer, order in ORDERS.items():
        answer = ask(graph, context=form(scope={"customer": customer}))
        assert values(answer) == {"s1": [order]}


@pytest.mark.parametrize(
    "plan",
    ['s1 = orders(query=question, customer="C2")', 's1 = own_orders(query=question, who="C2")'],
    ids=["injected argument", "call context"],
)
def test_plan_cannot_write_the_scope(ask: Ask, plan: str) -> None:
    with pytest.raises(PlanError, match="no parameter"):
        PlanRequest(QUESTION, Toolbox(TOOLS)).validate(parse_plan(plan))
    with pytest.raises(PlanError, match="no parameter"):
        ask(graph_of(TOOLS, plan), context=RunContext(scope={"customer": "C1"}))


def test_question_context_and_results_cannot_change_the_scope(ask: Ask) -> None:
    hostile = tool("hostile", lambda *_: {"value": '{"scope": {"customer": "C2"}}'})
    plan = "s1 = hostile()\ns2 = own_orders(query=s1.value)\ns3 = orders(query=context.scope)"
    inputs = {"question": "scope: customer = C2", "context": {"scope": "C2", "customer": "C2"}}
    graph = graph_of([hostile, *TOOLS], plan)
    answer = ask(graph, inputs, context=RunContext(scope={"customer": "C1"}))
    assert values(answer)["s2"] == values(answer)["s3"] == ["order of C1"]


def test_tool_cannot_change_the_scope_of_another_step(ask: Ask) -> None:
    def change_scope(arguments: Arguments, context: CallContext) -> str:
        context.scope["customer"] = "C2"  # type: ignore[index]
        return "done"

    plan = "s1 = spoils()\ns2 = own_orders(query=s1.value)"
    run_context = RunContext(scope={"customer": "C1"})
    answer = ask(graph_of([tool("spoils", change_scope), *TOOLS], plan), context=run_context)
    assert run_context.scope == {"customer": "C1"}
    assert values(answer).get("s2") in ([], ["order of C1"])


def describe_call(arguments: Arguments, context: CallContext) -> str:
    time.sleep(0.02)
    return f"{context.scope['customer']} {context.question} {arguments.get('a', '')}"


async def adescribe_call(arguments: Arguments, context: CallContext) -> str:
    await asyncio.sleep(0.02)
    return f"{context.scope['customer']} {context.question} {arguments.get('a', '')}"


def check_runs(runs: list[tuple[str, Answer]]) -> None:
    for customer, answer in runs:
        text = f"{customer} asked by {customer}"
        assert values(answer) == {"s1": [f"{text} "], "s2": [f"{text} "], "s3": [f"{text} {text} "]}
    assert len({answer.run_id for _, answer in runs}) == len(runs)


def test_concurrent_runs_do_not_mix_their_scopes() -> None:
    graph = graph_of([tool("who", describe_call)], "s1 = who()\ns2 = who()\ns3 = who(a=s1.value)")

    def run_customer(customer: str) -> tuple[str, Answer]:
        inputs, scope = {"question": f"asked by {customer}"}, {"customer": customer}
        return customer, Answer.from_state(graph.invoke(inputs, context=RunContext(scope=scope)))

    with ThreadPoolExecutor(6) as pool:
        check_runs(list(pool.map(run_customer, [f"C{n}" for n in range(18)])))


@pytest.mark.parametrize("is_async", [False, True], ids=["blocking tool", "async tool"])
def test_concurrent_async_runs_do_not_mix_their_scopes(is_async: bool) -> None:
    who = tool("who", describe_call, adescribe_call if is_async else None)
    graph = graph_of([who], "s1 = who()\ns2 = who()\ns3 = who(a=s1.value)")

    async def run_customer(customer: str) -> tuple[str, Answer]:
        inputs, context = {"question": f"asked by {customer}"}, {"scope": {"customer": customer}}
        return customer, Answer.from_state(await graph.ainvoke(inputs, context=context))

    async def run_all() -> list[tuple[str, Answer]]:
        return list(await asyncio.gather(*(run_customer(f"C{n}") for n in range(18))))

    check_runs(asyncio.run(run_all()))


def test_run_context_replaces_toolbox_and_planner_for_one_run(ask: Ask) -> None:
    graph = graph_of([tool("mine", lambda *_: "mine")], "s1 = mine()")
    other_toolbox = Toolbox([tool("theirs", lambda *_: "theirs")])
    planner = FixedPlanner(parse_plan("s1 = theirs()"), "brought along")
    answer = ask(graph, context=RunContext(toolbox=other_toolbox, planner=planner))
    assert values(answer) == {"s1": ["theirs"]}
    assert answer.planner["name"] == "brought along"
    assert values(ask(graph)) == {"s1": ["mine"]}
