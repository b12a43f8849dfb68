"""Calling a chat model within a deadline, blocking or not."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from casewright.tools.deadline import await_within, call_within, start_daemon

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage, MessageLikeRepresentation
    from langchain_core.runnables import Runnable


def ask(
    model: Runnable[Any, Any], messages: Sequence[MessageLikeRepresentation], seconds: float
) -> Any:
    """Return the model's message.

    Args:
        model: A chat model, also with settings bound to it.
        messages: LangChain's messages, or pairs of a role and a text.
        seconds: Its deadline.

    Raises:
        TimeoutError: It took longer than ``seconds``.
    """
    return call_within(lambda: model.invoke(list(messages)), max(seconds, 0.0))


async def aask(model: BaseChatModel, messages: Sequence[BaseMessage], seconds: float) -> Any:
    """Return the model's message without blocking the event loop.

    A model that can only block is called in a daemon thread: LangChain would give it to the loop's
    executor, whose threads the process waits for at its end. One that swallows its cancellation is
    abandoned.

    Raises:
        TimeoutError: It took longer than ``seconds``.
    """
    from langchain_core.language_models import BaseChatModel, SimpleChatModel

    own = getattr(type(model), "_agenerate", None)
    if own in (BaseChatModel._agenerate, SimpleChatModel._agenerate):
        work: Any = _in_thread(model, messages)
    else:
        work = asyncio.ensure_future(_awaited(model, messages))
    return await await_within(work, seconds)


def _in_thread(model: BaseChatModel, messages: Sequence[BaseMessage]) -> asyncio.Future[Any]:
    return asyncio.wrap_future(start_daemon(lambda: model.invoke(list(messages))))


async def _awaited(model: BaseChatModel, messages: Sequence[BaseMessage]) -> Any:
    try:
        return await model.ainvoke(list(messages))
    except SystemExit as error:
        # A task that ends by it would end the event loop.
        raise RuntimeError("The model raised SystemExit.") from error
    except RuntimeError as error:
        if str(error) != "Event loop is closed":
            raise
        # A client that all models of an address share has kept a connection of an event loop that
        # ended, by an earlier asyncio.run; its blocking twin has none.
        return await _in_thread(model, messages)
