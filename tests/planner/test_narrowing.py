"""The narrowing planner keeps the tools of a large toolbox that a question may need."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from casewright.planner import (
    AnnotatedQuery,
    CasePlanner,
    Plan,
    PlanRequest,
    PlanResult,
    Step,
    plan_store,
)
from casewright.planner.fallback import FallbackPlanner, fallback_plan
from casewright.planner.narrowing import MAX_TOOLS, NarrowingPlanner, narrowing
from casewright.planner.request import BatchPlanner
from casewright.tools import Toolbox, ToolExample, ToolSpec
from tests.planner.helpers import parameter
from tests.support.encoders import HashingEncoder

THINGS = [f"{first}{second}" for first in "bcdfghklmnprstvz" for second in ("oat", "ird", "ack")]


def tools(things: Sequence[str]) -> list[ToolSpec]:
    """Return two tools for each thing; the second one takes a result of the first one."""
    specs = []
    for thing in things:
        find = f's1 = find_{thing}(query="{thing}")'
        specs += [
            ToolSpec(
                f"find_{thing}",
                f"Finds a {thing}.",
                (parameter("query", "span"),),
                (f"{thing}_id",),
                ToolExample(f"where is the {thing}", find),
            ),
            ToolSpec(
                f"measure_{thing}",
                "The latest reading.",
                (parameter(f"{thing}_id", "step", "context"),),
            ),
        ]
    return specs


LARGE = Toolbox(tools(THINGS))


@pytest.fixture
def planner() -> NarrowingPlanner:
    return NarrowingPlanner(FallbackPlanner(), HashingEncoder())


def narrowed_tools(planner: NarrowingPlanner, question: str, **more: object) -> tuple[str, ...]:
    return planner.narrowed(PlanRequest(question, LARGE, **more)).toolbox.names  # type: ignore[arg-type]


def test_narrowing_keeps_the_requested_tool_and_the_tool_that_uses_its_result(
    planner: NarrowingPlanner,
) -> None:
    for thing in THINGS:
        names = narrowed_tools(planner, f"where is my {thing}")
        assert {f"find_{thing}", f"measure_{thing}", "no_evidence"} <= set(names)
        assert len(names) == MAX_TOOLS


def test_narrowing_keeps_the_order_of_tools(planner: NarrowingPlanner) -> None:
    names = narrowed_tools(planner, "where is my boat")
    assert list(names) == [name for name in LARGE.names if name in names]
    assert names == narrowed_tools(planner, "where is my boat")


def test_narrowing_keeps_tools_that_use_a_context_field(planner: NarrowingPlanner) -> None:
    assert "measure_zack" in narrowed_tools(planner, "and now", context={"zack_id": "Z1"})


def test_narrowing_keeps_tools_for_the_earlier_question_of_a_follow_up(
    planner: NarrowingPlanner,
) -> None:
    history = ({"question": "where is the tird", "answer": "There."},)
    assert "find_tird" in narrowed_tools(planner, "and that other one", history=history)


def test_narrowing_keeps_tools_of_similar_plan_cases() -> None:
    encoder = HashingEncoder()
    case = {"id": "1", "query": "my usual please", "plan": 's1 = find_vack(query="usual")'}
    with plan_store([AnnotatedQuery.read(case)], encoder) as store:
        planner = NarrowingPlanner(FallbackPlanner(), encoder, store)
        assert "find_vack" in narrowed_tools(planner, "my usual please")


def test_narrowing_keeps_tools_of_fixed_steps(planner: NarrowingPlanner) -> None:
    question = "where is my boat"
    omitted = sorted({*LARGE.names} - {*narrowed_tools(planner, question)})[0]
    fixed = Plan((Step(omitted),))
    assert omitted in narrowed_tools(planner, question, fixed=fixed)


def test_narrowing_leaves_a_small_toolbox_unchanged(planner: NarrowingPlanner) -> None:
    request = PlanRequest("where is my boat", Toolbox(tools(THINGS[:20])))
    assert planner.narrowed(request) is request
    inner = FallbackPlanner()
    assert narrowing(inner, request.toolbox) is inner


def test_narrowing_planner_returns_a_plan_valid_for_the_whole_toolbox() -> None:
    encoder = HashingEncoder()
    with plan_store([], encoder) as store:
        planner = narrowing(CasePlanner(store), LARGE, encoder, store)
        request = PlanRequest("where is the boat", LARGE)
        result = planner.plan(request)
        assert (planner.name, str(result.plan)) == ("case", 's1 = find_boat(query="boat")')
        request.validate(result.plan)
        assert asyncio.run(planner.aplan(request)).plan == result.plan


def test_narrowing_a_batch_planner_gives_a_batch_planner() -> None:
    class BatchFallback(FallbackPlanner):
        batch = 3

        def plan_many(self, requests: Sequence[PlanRequest]) -> list[PlanResult]:
            assert all(len(request.toolbox) <= MAX_TOOLS for request in requests)
            return [PlanResult(fallback_plan(request), self.name) for request in requests]

    planner = narrowing(BatchFallback(), LARGE, HashingEncoder())
    assert isinstance(planner, BatchPlanner)
    assert planner.batch == 3
    assert len(planner.plan_many([PlanRequest("where is my boat", LARGE)] * 2)) == 2
