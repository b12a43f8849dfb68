from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from casewright.planner import CasePlanner, ChatPlanner, PlanRequest, PlanResult
from tests.planner.helpers import SHOP
from tests.planner.models import AsyncHangingModel, HangingModel, SimpleHangingModel, scripted

REQUEST = PlanRequest("do you sell wool socks", SHOP)
VALID_PLAN = 's1 = find(query="wool socks")'
INVALID_PLAN = 's1 = fact(item_id="p1", query=question)'


@pytest.fixture(params=["sync", "async"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def hanging() -> Iterator[HangingModel]:
    model = HangingModel(answers=[])
    yield model
    model.released.set()


def plan_with(planner: ChatPlanner, mode: str) -> PlanResult:
    result = planner.plan(REQUEST) if mode == "sync" else asyncio.run(planner.aplan(REQUEST))
    REQUEST.validate(result.plan)
    return result


def test_case_planner_plans_after_two_invalid_plans_of_the_chat_model(
    shop_planner: CasePlanner, mode: str
) -> None:
    model = scripted("s1 = buy()", INVALID_PLAN)
    result = plan_with(ChatPlanner(model, fallback=shop_planner), mode)
    assert str(result.plan) == VALID_PLAN
    assert result.planner == "case"
    assert result.attempts == 3
    assert len(model.requests) == 2
    assert result.written == INVALID_PLAN
    assert result.fallback.startswith("chat:scripted: ")
    assert 'item_id may not be the text "p1"' in result.fallback


def test_chat_planner_without_fallback_planner_returns_the_fallback_plan(mode: str) -> None:
    result = plan_with(ChatPlanner(scripted(INVALID_PLAN, INVALID_PLAN)), mode)
    assert str(result.plan) == "s1 = find(query=question)"
    assert result.planner == "fallback"
    assert "item_id" in result.fallback


@pytest.mark.parametrize("answers", [[], [INVALID_PLAN]], ids=["at first", "at the repair"])
def test_fallback_reason_names_the_exception_of_the_chat_model(
    shop_planner: CasePlanner, mode: str, answers: list[str]
) -> None:
    model = scripted(*answers, ConnectionError("refused by\n10.0.0.1"))
    result = plan_with(ChatPlanner(model, fallback=shop_planner), mode)
    assert str(result.plan) == VALID_PLAN
    assert "ConnectionError: refused by 10.0.0.1" in result.fallback


def test_fallback_reason_quotes_a_timeout_error_that_the_model_raised(mode: str) -> None:
    result = plan_with(ChatPlanner(scripted(TimeoutError("handshake timed out")), seconds=60), mode)
    assert "handshake timed out" in result.fallback


KEY = "a8Fk3Lm9Qz7Rt2Xv"


@pytest.mark.parametrize(
    "text",
    [
        f"Incorrect API key provided: sk-{KEY}",
        f"Incorrect API key provided: sk-proj-{KEY}",
        f"Authorization: Bearer {KEY}",
        f"token={KEY}",
        f"password: '{KEY}'",
        f"GET https://host/v1?key={KEY}",
        f"api_key={KEY}",
        f"OPENAI_API_KEY={KEY} is wrong",
        f"api_key='{KEY}'",
        '{"api_key": "' + KEY + '"}',
        f"refused: gsk_{KEY}",
        f"refused: hf_{KEY}",
        f"https://user:{KEY}@host/v1",
        f"Incorrect API key provided: {KEY}",
        '{\\"api_key\\": \\"' + KEY + '\\"}',
    ],
)
def test_fallback_reason_masks_secrets_in_an_exception(text: str) -> None:
    result = plan_with(ChatPlanner(scripted(RuntimeError(text))), "sync")
    assert "RuntimeError" in result.fallback
    assert KEY not in result.fallback


@pytest.mark.parametrize(
    "text",
    ["max_tokens: 128000 is too much", "hf_hub_download failed", "https://host/a@b", "see key 12"],
)
def test_fallback_reason_keeps_text_that_is_no_secret(text: str) -> None:
    assert text in plan_with(ChatPlanner(scripted(RuntimeError(text))), "sync").fallback


def test_fallback_reason_shortens_a_long_exception() -> None:
    result = plan_with(ChatPlanner(scripted(RuntimeError("word " * 10_000))), "sync")
    assert len(result.fallback) < 500


def test_chat_planner_abandons_a_hanging_model_at_its_deadline(
    shop_planner: CasePlanner, hanging: HangingModel
) -> None:
    started = time.perf_counter()
    result = plan_with(ChatPlanner(hanging, fallback=shop_planner, seconds=0.3), "sync")
    assert 0.25 < time.perf_counter() - started < 8
    assert str(result.plan) == VALID_PLAN
    assert "no plan within 0.3 s" in result.fallback


def test_first_attempt_and_repair_round_share_one_deadline(hanging: HangingModel) -> None:
    hanging.answers.append(INVALID_PLAN)
    started = time.perf_counter()
    result = plan_with(ChatPlanner(hanging, seconds=0.3), "sync")
    assert time.perf_counter() - started < 8
    assert "no plan within 0.3 s" in result.fallback
    assert result.attempts == 2


def test_chat_planner_abandons_a_hanging_async_model_at_its_deadline(
    shop_planner: CasePlanner,
) -> None:
    model = AsyncHangingModel(answers=[])
    started = time.perf_counter()
    result = plan_with(ChatPlanner(model, fallback=shop_planner, seconds=0.3), "async")
    assert time.perf_counter() - started < 8
    assert str(result.plan) == VALID_PLAN
    assert "no plan within 0.3 s" in result.fallback


def test_hanging_sync_model_does_not_block_the_event_loop(
    hanging: HangingModel,
) -> None:
    async def run() -> tuple[PlanResult, float, int]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        ticker = asyncio.create_task(tick())
        started = time.perf_counter()
        result = await ChatPlanner(hanging, seconds=0.3).aplan(REQUEST)
        seconds = time.perf_counter() - started
        ticker.cancel()
        hanging.released.set()
        return result, seconds, ticks

    result, seconds, ticks = asyncio.run(run())
    assert seconds < 8
    assert ticks >= 5
    assert "no plan within 0.3 s" in result.fallback


def test_hanging_sync_model_does_not_delay_the_end_of_the_event_loop(
    hanging: HangingModel,
) -> None:
    simple = SimpleHangingModel()
    for model in (hanging, simple):
        started = time.perf_counter()
        plan_with(ChatPlanner(model, seconds=0.3), "async")
        assert time.perf_counter() - started < 8
    simple.released.set()
