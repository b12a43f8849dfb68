"""A call of a chat model ends in time even if the model does not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from casewright.planner.chat_call import aask
from tests.planner.models import ScriptedModel


class AwaitedModel(ScriptedModel):
    """Awaits the result of ``awaits()``, then answers."""

    awaits: Callable[[], Any]

    async def _agenerate(self, *args: Any, **more: Any) -> ChatResult:
        await self.awaits()
        return ChatResult(generations=[ChatGeneration(message=AIMessage("done"))])


class DirectModel(AwaitedModel):
    """Awaits and answers without the tasks that LangChain starts for a call."""

    async def ainvoke(self, *args: Any, **more: Any) -> AIMessage:
        await self.awaits()
        return AIMessage("done")


MODELS = pytest.mark.parametrize("cls", [AwaitedModel, DirectModel], ids=["langchain's", "own"])


async def sleep_on() -> None:
    end = time.perf_counter() + 1
    while time.perf_counter() < end:
        try:
            await asyncio.sleep(end - time.perf_counter())
        except asyncio.CancelledError:
            continue


async def exit_process() -> None:
    raise SystemExit(1)


@MODELS
@pytest.mark.parametrize("cancelled", [False, True], ids=["late", "cancelled"])
def test_chat_call_ends_in_time_though_the_model_swallows_its_cancellation(
    cls: type[AwaitedModel], cancelled: bool
) -> None:
    async def measure() -> float:
        started = time.perf_counter()
        call = aask(cls(answers=[], awaits=sleep_on), [HumanMessage("q")], 9 if cancelled else 0.1)
        with pytest.raises(TimeoutError):
            await (asyncio.wait_for(call, 0.1) if cancelled else call)
        return time.perf_counter() - started

    assert asyncio.run(measure()) < 0.6


def test_event_loop_ends_without_waiting_for_an_abandoned_model() -> None:
    started = time.perf_counter()
    with pytest.raises(TimeoutError):
        asyncio.run(aask(DirectModel(answers=[], awaits=sleep_on), [HumanMessage("q")], 0.1))
    assert time.perf_counter() - started < 0.6


def test_system_exit_in_a_chat_model_becomes_a_runtime_error() -> None:
    model = DirectModel(answers=[], awaits=exit_process)
    with pytest.raises(RuntimeError, match="SystemExit"):
        asyncio.run(aask(model, [HumanMessage("q")], 5))


@MODELS
def test_chat_call_returns_the_answer_of_a_model_in_time(cls: type[AwaitedModel]) -> None:
    model = cls(answers=[], awaits=lambda: asyncio.sleep(0))
    assert asyncio.run(aask(model, [HumanMessage("q")], 5)).text == "done"
