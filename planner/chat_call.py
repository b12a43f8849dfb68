"""Calls of a chat model within a deadline, and one sentence on why a call failed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from casewright.errors import InputError, cleaned, told
from casewright.tools.deadline import await_within, call_within, start_daemon

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage, MessageLikeRepresentation
    from langchain_core.runnables import Runnable

#: Answers messages of a role (``system``, ``user``, ``assistant``) and a text, in their order.
Chat = Callable[[Sequence[tuple[str, str]]], str]
#: Deadline of an answer.
SECONDS = 120.0
#: What openai's client says of an answer whose words it does not understand.
_BARE = re.compile(r"Error code: [0-9]+")
#: How providers' classes call the address that they were given.
_ADDRESSES = ("openai_api_base", "base_url", "anthropic_api_url", "azure_endpoint", "endpoint_url")


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


def chat_text(model: BaseChatModel, seconds: float = SECONDS) -> Chat:
    """Return a function that asks a model.

    Args:
        model: The model.
        seconds: Deadline of each answer.

    Returns:
        The function; it raises an ``InputError`` where the model fails, which says why.
    """

    def said(messages: Sequence[tuple[str, str]]) -> str:
        try:
            return str(ask(model, messages, seconds).text)
        except Exception as error:
            raise InputError(failure(model, error)) from error

    return said


def failure(model: BaseChatModel, error: BaseException) -> str:
    """Return one sentence without secrets: which model, and why it failed.

    Clients say no more than "Connection error." themselves; the causes beneath say that the server
    refused, or has no such host. Nor do they repeat what a server says in another form than theirs.
    """
    said, cause = told(error), _root_cause(error)
    if _BARE.fullmatch(str(error)) and (words := _words(error)):
        said = f"{said} - {words}"
    if str(cause) not in str(error):
        said = f"{said.rstrip('.')} ({told(cause)})"
    return f"The model{place(model, error)} failed: {said}"


def place(model: BaseChatModel, error: BaseException | None = None) -> str:
    """Return " at URL" where a model's settings or its error tell its server, else nothing."""
    for attribute in _ADDRESSES:
        if isinstance(value := getattr(model, attribute, None), str) and value:
            return f" at {cleaned(value)}"
    url = getattr(getattr(error, "request", None), "url", None)
    return f" at {cleaned(str(url))}" if url else ""


def _words(error: BaseException) -> str:
    """Return the server's own words, in one line."""
    text = getattr(getattr(error, "response", None), "text", "")
    return cleaned(text, 200) if isinstance(text, str) else ""


def _root_cause(error: BaseException) -> BaseException:
    """Return the last of the causes that say anything."""
    seen = [error]
    while (cause := seen[-1].__cause__) is not None and cause not in seen:
        seen.append(cause)
    return next((each for each in reversed(seen) if str(each).strip()), error)


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
