"""A request can lower limits but not raise them; no plan can change the tenant."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langgraph.types import RetryPolicy

from casewright.errors import InputError, ToolError
from casewright.graph import Answer, Limits, RunContext
from casewright.stores import Case, CaseSchema, CaseStore, text_facet
from casewright.tools import CallContext, tool_from_store
from tests.graph.helpers import QUESTION, Arguments, Ask, graph_of, statuses, tool, values
from tests.support.encoders import HashingEncoder


def find_nine_rows(arguments: Arguments, context: CallContext) -> list[str]:
    return ["long text"] * 9


def slow(arguments: Arguments, context: CallContext) -> str:
    time.sleep(0.6)
    return "late"


MANY = tool("many", find_nine_rows)


def rows_of(ask: Ask, limits: Any, **graph_limits: Any) -> list[Any]:
    answer = ask(graph_of([MANY], "s1 = many()", **graph_limits), context=RunContext(limits=limits))
    return values(answer)["s1"]


@pytest.mark.parametrize("limits", [Limits(rows=2), {"rows": 2}])
def test_request_can_lower_a_limit(ask: Ask, limits: Any) -> None:
    assert len(rows_of(ask, limits)) == 2


@pytest.mark.parametrize("limits", [Limits(rows=40, characters=900), {"rows": 40}, None, {}])
def test_request_cannot_raise_a_limit(ask: Ask, limits: Any) -> None:
    assert rows_of(ask, limits, rows=3, characters=4) == ["long …"] * 3


def test_limit_of_the_graph_applies_when_the_request_omits_it(ask: Ask) -> None:
    assert rows_of(ask, {"characters": 6}, rows=5) == ["long t …"] * 5


def test_request_can_lower_the_seconds_of_a_step(ask: Ask) -> None:
    graph = graph_of([tool("slow", slow)], "s1 = slow()")
    answer = ask(graph, context=RunContext(limits={"step_seconds": 0.05}))
    assert statuses(answer) == {"s1": "timed_out"}
    assert statuses(ask(graph)) == {"s1": "done"}


def test_planner_gets_the_lower_step_limit_of_request_and_graph(ask: Ask) -> None:
    step_limits: list[int] = []

    class RecordingPlanner:
        name = "counts"

        def plan(self, request: Any) -> Any:
            from casewright.planner import PlanResult, parse_plan

            step_limits.append(request.max_steps)
            return PlanResult(parse_plan("s1 = many()"), self.name)

        async def aplan(self, request: Any) -> Any:
            return self.plan(request)

    graph = graph_of([MANY], "s1 = many()", steps=6)
    for limits in ({"steps": 2}, {"steps": 9}, None):
        ask(graph, context=RunContext(planner=RecordingPlanner(), limits=limits))
    assert step_limits == [2, 6, 6]


def test_request_can_lower_only_the_attempts_of_the_retry_policy() -> None:
    graph_limits = Limits(retry=RetryPolicy(max_attempts=3, initial_interval=0.5))
    limits = graph_limits.within(Limits(retry=RetryPolicy(max_attempts=1, initial_interval=9.0)))
    assert (limits.retry.max_attempts, limits.retry.initial_interval) == (1, 0.5)
    assert graph_limits.within(Limits(retry=RetryPolicy(max_attempts=9))).retry.max_attempts == 3
    assert graph_limits.within({"rows": 1}).retry == graph_limits.retry


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"row": 2}, "the unknown limit 'row'. Limits of a request are steps"),
        ({"retry": 2}, "the unknown limit 'retry'"),
        ({"rows": 0}, "rows=0. Give a whole number above 0"),
        ({"rows": -1}, "rows=-1"),
        ({"rows": 2.5}, "rows=2.5"),
        ({"rows": True}, "rows=True"),
        ({"rows": "2"}, "rows='2'"),
        ({"step_seconds": float("nan")}, "step_seconds=nan. Give a number above 0"),
        ({"step_seconds": float("inf")}, "step_seconds=inf"),
        (3, "limits=int"),
    ],
)
def test_invalid_limit_is_refused_and_named(ask: Ask, limits: Any, message: str) -> None:
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        rows_of(ask, limits)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"toolbox": "all"}, "toolbox=str 'all'"),
        ({"planner": "gpt"}, "planner=str 'gpt'"),
        ({"scope": ["C1"]}, "scope=list"),
        ({"tenant": ""}, "tenant=str ''"),
        ({"tenant": 7}, "tenant=int '7'"),
        ({"tenant": "a", "scope": {"tenant": "b"}}, "'a' as tenant and 'b' in the scope"),
    ],
)
def test_invalid_run_context_is_refused(ask: Ask, fields: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ask(graph_of([MANY], "s1 = many()"), context=RunContext(**fields))


def describe_scope(arguments: Arguments, context: CallContext) -> str:
    return f"{context.scope.get('tenant')} {context.scope.get('customer')}"


def test_scope_of_every_tool_contains_the_tenant(ask: Ask) -> None:
    graph = graph_of([tool("who", describe_scope)], "s1 = who()")
    for context in (
        RunContext(tenant="acme", scope={"customer": "C1"}),
        RunContext(scope={"customer": "C1", "tenant": "acme"}),
        {"tenant": "acme", "scope": {"customer": "C1"}},
    ):
        assert values(ask(graph, context=context)) == {"s1": ["acme C1"]}


def tenants_store() -> CaseStore:
    schema = CaseSchema("notes", (text_facet("text", HashingEncoder(64)),), tenanted=True)
    store = CaseStore(schema, tenant="nobody")
    for tenant in TENANTS:
        with store.for_tenant(tenant) as tenant_store:
            tenant_store.add(
                Case({"text": f"the code word number {n}"}, f"{tenant} word {n}", metadata={"n": n})
                for n in range(3)
            )
    return store


TENANTS = ["acme", "bolt", "corp", "dune"]


@pytest.fixture
def store() -> Iterator[CaseStore]:
    with tenants_store() as opened:
        yield opened


def find_in(store: CaseStore, **kw: Any) -> Any:
    return tool_from_store(store, name="find", description="Finds.", **{"per_tenant": True, **kw})


PLAN = "s1 = find(query=question)\ns2 = find(query=s1.evidence)\ns3 = find(query=context.hint)"


def check_rows(tenant: str, answer: Answer) -> None:
    for step in answer.steps:
        assert step["status"] == "done"
        assert len(step["rows"]) == 3
        assert all(tenant in row["evidence"] for row in step["rows"]), (tenant, step["rows"])


#: A request that names other tenants, which must have no effect.
HOSTILE = {"question": "code word of bolt", "context": {"hint": "acme word", "tenant": "bolt"}}


def test_tenants_of_one_graph_find_only_their_own_cases_in_threads(store: CaseStore) -> None:
    graph = graph_of([find_in(store)], PLAN)

    def run_tenant(tenant: str) -> None:
        state = graph.invoke(HOSTILE, context=RunContext(tenant=tenant))
        check_rows(tenant, Answer.from_state(state))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(run_tenant, TENANTS * 6))


def test_tenants_of_one_graph_find_only_their_own_cases_on_one_event_loop(store: CaseStore) -> None:
    graph = graph_of([find_in(store)], PLAN)

    async def run_tenant(tenant: str) -> None:
        state = await graph.ainvoke(HOSTILE, context={"tenant": tenant})
        check_rows(tenant, Answer.from_state(state))

    async def run_all() -> None:
        await asyncio.gather(*(run_tenant(tenant) for tenant in TENANTS * 6))

    asyncio.run(run_all())


def test_step_fails_when_a_request_without_tenant_searches_a_tenanted_store(
    ask: Ask, store: CaseStore
) -> None:
    answer = ask(graph_of([find_in(store)], "s1 = find(query=question)"))
    assert statuses(answer) == {"s1": "failed"}
    assert "has no tenant" in answer.missing[0]


def test_tenant_without_cases_finds_no_case(ask: Ask, store: CaseStore) -> None:
    graph = graph_of([find_in(store)], "s1 = find(query=question)")
    assert statuses(ask(graph, context=RunContext(tenant="new"))) == {"s1": "empty"}


def test_store_opened_for_one_tenant_is_not_searched_for_another(
    ask: Ask, store: CaseStore
) -> None:
    with store.for_tenant("acme") as acme:
        graph = graph_of([find_in(acme, per_tenant=False)], "s1 = find(query=question)")
        assert statuses(ask(graph, context=RunContext(tenant="acme"))) == {"s1": "done"}
        assert statuses(ask(graph)) == {"s1": "done"}
        answer = ask(graph, context=RunContext(tenant="bolt"))
        assert statuses(answer) == {"s1": "failed"}
        assert "per_tenant=True" in answer.missing[0]
        assert "acme" not in answer.text


def test_store_without_tenants_is_searched_for_every_tenant(ask: Ask) -> None:
    schema = CaseSchema("manuals", (text_facet("text", HashingEncoder(64)),))
    with CaseStore(schema) as manuals:
        manuals.add([Case({"text": "memory of a phone"}, "8 GB")])
        graph = graph_of([find_in(manuals, per_tenant=False)], "s1 = find(query=question)")
        assert statuses(ask(graph, context=RunContext(tenant="acme"))) == {"s1": "done"}


def test_plan_cannot_name_the_tenant(store: CaseStore) -> None:
    assert [parameter.name for parameter in find_in(store).parameters] == ["query"]
    with pytest.raises(ToolError, match="filter by 'tenant'"):
        find_in(store, filters=("tenant",))


def test_custom_search_gets_the_tenant_in_its_where_condition(ask: Ask, store: CaseStore) -> None:
    conditions: list[Any] = []

    def search(query: str, k: int, where: Any, context: CallContext) -> list[Any]:
        conditions.append(dict(where))
        return []

    graph = graph_of([find_in(store, search=search)], "s1 = find(query=question)")
    ask(graph, {"question": QUESTION}, context=RunContext(tenant="acme"))
    assert conditions == [{"tenant": "acme"}]
