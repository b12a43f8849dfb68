"""The step-by-step agent as a planner: its steps become the plan, and it really calls the tools."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from casewright.graph.step_agent import AgentPlanner
from casewright.planner import ModelPlanner, PlanRequest, plan_store
from casewright.planner.language_model import LanguageModel
from casewright.tools import CallContext, Toolbox, tool_from_function
from tests.planner.helpers import SHOP, make_queries
from tests.support.encoders import HashingEncoder
from tests.support.tiny_mistral import tiny_mistral

QUESTION = "how warm is the lathe"
#: Tool, scope and key of each call.
CALLS: list[tuple[str, dict[str, str], str]] = []


def find_machine(query: str, call: CallContext) -> list[dict[str, str]]:
    """Finds a machine of this plant."""
    CALLS.append(("find_machine", dict(call.scope), call.key))
    return [{"machine_id": f"M{number}"} for number in range(3)]


def read_sensor(machine_id: str, call: CallContext) -> str:
    """The temperature of one machine."""
    CALLS.append(("read_sensor", dict(call.scope), call.key))
    return f"{machine_id}: 61 °C"


PLANT = Toolbox(
    [
        tool_from_function(find_machine, results=("machine_id",)),
        tool_from_function(read_sensor, sources={"machine_id": ("step",)}),
    ]
)


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    # With these weights, the model calls several tools and then stops.
    return tiny_mistral(4, initializer_range=0.3)


def plan_request(toolbox: Toolbox = PLANT, **options: Any) -> PlanRequest:
    return PlanRequest(QUESTION, toolbox, max_steps=3, **options)


def test_agent_planner_returns_a_valid_plan_of_the_tools_it_called(model: LanguageModel) -> None:
    CALLS.clear()
    planner = AgentPlanner(model, scope={"hall": "B"})
    result = planner.plan(plan_request())
    assert result.fallback == ""
    assert result.planner == planner.name == f"agent:{model.name}"
    plan_request().validate(result.plan)
    called_tools = [name for name, _, _ in CALLS]
    assert called_tools == [tool for tool in result.plan.tools if tool != "no_evidence"]
    assert called_tools
    assert all(scope == {"hall": "B"} for _, scope, _ in CALLS)


def test_agent_planner_does_not_call_a_tool_that_needs_approval(model: LanguageModel) -> None:
    CALLS.clear()
    tools = [replace(tool, approval=tool.name == "find_machine") for tool in PLANT]
    result = AgentPlanner(model).plan(plan_request(Toolbox(tools)))
    assert "find_machine" not in [*result.plan.tools, *(name for name, _, _ in CALLS)]


def test_agent_planner_reports_model_calls_tokens_and_time(model: LanguageModel) -> None:
    result = AgentPlanner(model).plan(plan_request())
    assert result.tokens["model_calls"] == len(result.plan.steps) + 1
    single_call = ModelPlanner(model).plan(plan_request()).tokens
    assert result.tokens["input"] > single_call["input"]
    assert result.tokens["output"] > 0
    assert result.milliseconds > 0


def test_agent_planner_uses_new_call_keys_for_each_plan(model: LanguageModel) -> None:
    CALLS.clear()
    planner = AgentPlanner(model)
    first, second = planner.plan(plan_request()), planner.plan(plan_request())
    assert first.plan == second.plan
    keys = [key for _, _, key in CALLS]
    assert len(set(keys)) == len(keys) > 0


def test_agent_planner_returns_the_fallback_plan_when_no_tool_is_callable(
    model: LanguageModel,
) -> None:
    result = AgentPlanner(model).plan(plan_request(SHOP))
    assert "declared for planning only" in result.fallback
    assert str(result.plan) == "s1 = find(query=question)"
    assert result.attempts == 2


def test_agent_planner_plans_without_fallback_when_one_tool_is_not_callable(
    model: LanguageModel,
) -> None:
    toolbox = Toolbox(
        [replace(tool, run=None) if tool.name == "find_machine" else tool for tool in PLANT]
    )
    result = AgentPlanner(model).plan(plan_request(toolbox))
    assert result.fallback == ""
    plan_request(toolbox).validate(result.plan)


@pytest.mark.parametrize(
    ("limit", "reason"),
    [({"seconds": 0}, "The plan was not finished in time"), ({"tokens": 2}, "within 2 tokens")],
    ids=["time", "tokens"],
)
def test_agent_planner_returns_the_fallback_plan_at_a_time_or_token_limit(
    model: LanguageModel, limit: dict[str, Any], reason: str
) -> None:
    result = AgentPlanner(model, **limit).plan(plan_request())
    assert reason in result.fallback
    plan_request().validate(result.plan)


def test_agent_planner_prompt_is_longer_with_plan_cases_as_examples(model: LanguageModel) -> None:
    store = plan_store(make_queries(), HashingEncoder(128))
    callable_shop = Toolbox([replace(tool, run=lambda *_: []) for tool in SHOP])
    zero_shot = AgentPlanner(model, plan_cases=store).plan(plan_request(callable_shop))
    few_shot = AgentPlanner(model, plan_cases=store, examples=2).plan(plan_request(callable_shop))
    assert few_shot.tokens["input"] > zero_shot.tokens["input"]


def test_agent_planner_writes_the_same_plan_with_plan_and_aplan(model: LanguageModel) -> None:
    planner = AgentPlanner(model)
    assert asyncio.run(planner.aplan(plan_request())).plan == planner.plan(plan_request()).plan
