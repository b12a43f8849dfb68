"""Chat models for tests: scripted ones, and ones that hang in a thread or on the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, SimpleChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field


class ScriptedModel(BaseChatModel):
    """Returns its answers in order; an answer that is an exception is raised."""

    answers: list[Any]
    model_name: str = "scripted"
    requests: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self.requests.append(list(messages))
        answer = self.answers[len(self.requests) - 1]
        if isinstance(answer, BaseException):
            raise answer
        usage: UsageMetadata = {"input_tokens": 100, "output_tokens": 7, "total_tokens": 107}
        message = AIMessage(answer, usage_metadata=usage)
        return ChatResult(generations=[ChatGeneration(message=message)])


class HangingModel(ScriptedModel):
    """Returns its answers, then blocks its thread until it is released, for at most 30 s."""

    released: Any = Field(default_factory=threading.Event)

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        if len(self.requests) >= len(self.answers):
            self.released.wait(30)
            raise RuntimeError("It was released.")
        return super()._generate(messages, *args, **kwargs)


class SimpleHangingModel(SimpleChatModel):
    """Blocks its thread until it is released; derived from ``SimpleChatModel``."""

    released: Any = Field(default_factory=threading.Event)

    @property
    def _llm_type(self) -> str:
        return "simple"

    def _call(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> str:
        self.released.wait(30)
        return "It was released."


class AsyncHangingModel(ScriptedModel):
    """Waits on the event loop without an answer, and can be cancelled there."""

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> Any:
        await asyncio.sleep(30)


def scripted(*answers: str | Sequence[Any] | BaseException) -> ScriptedModel:
    return ScriptedModel(answers=list(answers))
