from __future__ import annotations

import asyncio

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from casewright.planner import (
    ChatPlanner,
    PlanRequest,
    PlanResult,
    plan_store,
    render_prompt,
)
from tests.planner.helpers import SHOP, make_queries
from tests.planner.models import ScriptedModel, scripted
from tests.support.encoders import HashingEncoder

REQUEST = PlanRequest("do you sell wool socks", SHOP, {"page": "p1"})
ONE_STEP = 's1 = find(query="wool socks")'
TWO_STEPS = ONE_STEP + "\ns2 = fact(item_id=s1.item_id, query=question)"
INVALID_PLAN = 's1 = fact(item_id="p1", query=question)'


@pytest.fixture(params=["sync", "async"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def plan_with(planner: ChatPlanner, mode: str, request: PlanRequest = REQUEST) -> PlanResult:
    result = planner.plan(request) if mode == "sync" else asyncio.run(planner.aplan(request))
    request.validate(result.plan)
    return result


def test_chat_planner_returns_a_valid_answer_as_the_plan(mode: str) -> None:
    result = plan_with(ChatPlanner(scripted(TWO_STEPS)), mode)
    assert str(result.plan) == TWO_STEPS
    assert (result.planner, result.attempts, result.fallback) == ("chat:scripted", 1, "")
    assert result.tokens == {"input": 100, "output": 7}
    assert result.milliseconds > 0


@pytest.mark.parametrize(
    "answer",
    [
        f"```\n{TWO_STEPS}\n```",
        f"```text\r\n{TWO_STEPS}\r\n```\r\n",
        f"Sure! Here is the plan:\n\n{TWO_STEPS}\n\nIt looks up the socks first.",
        f"  {TWO_STEPS}  ",
        "\n\n".join(TWO_STEPS.split("\n")),
    ],
)
def test_chat_planner_ignores_code_fences_and_prose_around_the_plan(answer: str, mode: str) -> None:
    result = plan_with(ChatPlanner(scripted(answer)), mode)
    assert str(result.plan) == TWO_STEPS
    assert result.attempts == 1


def test_chat_planner_reads_an_answer_in_content_blocks() -> None:
    blocks = [{"type": "text", "text": ONE_STEP.split("(")[0]}, {"type": "text", "text": "("}]
    blocks[1]["text"] += ONE_STEP.split("(")[1]
    assert str(plan_with(ChatPlanner(scripted(blocks)), "sync").plan) == ONE_STEP


def test_chat_planner_sends_the_rendered_prompt_to_the_model(mode: str) -> None:
    model = scripted(ONE_STEP)
    plan_with(ChatPlanner(model), mode)
    prompt = render_prompt(REQUEST)
    (received,) = model.requests
    assert [(type(m), m.content) for m in received] == [
        (SystemMessage, prompt.head),
        (HumanMessage, prompt.tail),
    ]


def test_chat_planner_shows_only_plan_cases_that_the_request_allows() -> None:
    model = scripted(ONE_STEP)
    store = plan_store(make_queries(), HashingEncoder(256))
    request = PlanRequest("do you sell wool hats", SHOP.without("own"))
    plan_with(ChatPlanner(model, plan_cases=store, examples=2), "sync", request)
    tail = str(model.requests[0][1].content)
    assert "Question: do you sell wool socks\nPlan:" in tail
    assert tail.count("Plan:\n") == 2
    assert "own(" not in tail
    assert "context." not in tail


def test_chat_planner_sends_an_invalid_plan_back_once_with_its_error(mode: str) -> None:
    model = scripted(INVALID_PLAN, ONE_STEP)
    result = plan_with(ChatPlanner(model), mode)
    assert str(result.plan) == ONE_STEP
    assert (result.attempts, result.fallback) == (2, "")
    assert result.tokens == {"input": 200, "output": 14}
    first, second = model.requests
    assert second[: len(first)] == first
    answer, error = second[len(first) :]
    assert isinstance(answer, AIMessage)
    assert answer.content == INVALID_PLAN
    assert 's1: item_id may not be the text "p1". It takes context | step.' in str(error.content)


def test_chat_planner_repair_round_quotes_every_violation() -> None:
    model = scripted("s1 = buy()\ns2 = fact(item_id=s1.a)", ONE_STEP)
    plan_with(ChatPlanner(model), "sync")
    error = str(model.requests[1][-1].content)
    assert "s1: There is no tool buy." in error
    assert "s2: fact needs the argument query." in error


@pytest.mark.parametrize("answer", ["", "I cannot do that.", "s1 = find(", "s2 = find()", "\0"])
def test_chat_planner_sends_back_an_answer_that_is_no_plan(answer: str, mode: str) -> None:
    model = scripted(answer, ONE_STEP)
    assert str(plan_with(ChatPlanner(model), mode).plan) == ONE_STEP
    assert len(model.requests) == 2


def test_chat_planner_is_named_after_its_model() -> None:
    assert ChatPlanner(scripted()).name == "chat:scripted"
    assert ChatPlanner(ScriptedModel(answers=[], model_name="")).name == "chat:ScriptedModel"


def test_chat_planner_shares_no_messages_between_requests() -> None:
    model = scripted(INVALID_PLAN, ONE_STEP, TWO_STEPS)
    planner = ChatPlanner(model)
    assert [plan_with(planner, "sync").attempts for _ in range(2)] == [2, 1]
    assert len(model.requests[2]) == 2
