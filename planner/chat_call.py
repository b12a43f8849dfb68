"""Calling a chat model within a deadline, blocking or not."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from casewright.tools.deadline import call_within, start_daemon

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage


def ask(model: BaseChatModel, messages: Sequence[BaseMessage], seconds: float) -> Any:
    """Return the model's message.

    Raises:
        TimeoutError: It took longer than ``seconds``.
    """
    return call_within(lambda: model.invoke(list(messages)), max(seconds, 0.0))


async def aask(model: BaseChatModel, messages: Sequence[BaseMessage], seconds: float) -> Any:
    """Return the model's message without blocking the event loop.

    A model that can only block is called in a daemon thread: LangChain would give it to the loop's
    executor, whose threads the process waits for at its end.

    Raises:
        TimeoutError: It took longer than ``seconds``.
    """
    from langchain_core.language_models import BaseChatModel, SimpleChatModel

    own = getattr(type(model), "_agenerate", None)
    if own in (BaseChatModel._agenerate, SimpleChatModel._agenerate):
        answer: Any = asyncio.wrap_future(start_daemon(lambda: model.invoke(list(messages))))
    else:
        answer = model.ainvoke(list(messages))
    return await asyncio.wait_for(answer, max(seconds, 0.0))
