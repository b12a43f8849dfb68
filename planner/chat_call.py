"""Opens chat models by name, calls them with a deadline, and describes their failures."""

from __future__ import annotations

import asyncio
import os
import re
import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from casewright.errors import DependencyError, InputError, cleaned, one_line
from casewright.tools.deadline import await_within, call_within, start_daemon

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage, MessageLikeRepresentation
    from langchain_core.runnables import Runnable

#: Function that answers messages: pairs of a role (``system``, ``user``, ``assistant``) and a text.
Chat = Callable[[Sequence[tuple[str, str]]], str]
#: Time limit for a model's answer in ``chat_text``, in seconds.
ANSWER_SECONDS = 120.0
#: The error text of openai's client for a response that the client cannot read.
_STATUS_ONLY = re.compile(r"Error code: [0-9]+")
#: Environment variables with the server's address; langchain-openai reads them in this order.
_ADDRESS_VARIABLES = ("OPENAI_API_BASE", "OPENAI_BASE_URL")
#: The key that is sent if no key is set, since the client requires a key.
_PLACEHOLDER_KEY = "none"
#: The field of a chat model that holds the server's address has one of these names.
_URL_FIELDS = ("openai_api_base", "base_url", "anthropic_api_url", "azure_endpoint", "endpoint_url")


def chat_model(name: str, **settings: Any) -> BaseChatModel:
    """Return the chat model of a name such as ``openai:gpt-4o-mini`` or ``ollama:mistral``.

    Args:
        name: Provider and model. Keys and URLs come from the provider's environment variables.
            The provider ``openai`` reaches any OpenAI-compatible server: set the server's address
            as ``base_url`` or ``OPENAI_BASE_URL``. A key can be left out if the server needs none.
        settings: Passed to the provider, for example ``temperature``, ``base_url``, ``max_tokens``.

    Raises:
        InputError: The name is malformed, the address is not a URL, or the provider is unknown or
            misconfigured.
        DependencyError: ``langchain`` or the provider's package is not installed.
    """
    provider, _, model = name.partition(":")
    if not provider or not model:
        raise InputError(
            f"{name!r} names no chat model. Write provider:model, for example openai:gpt-4o-mini."
        )
    if provider == "local":
        from casewright.planner.local_chat import local_chat

        return local_chat(model, **settings)
    server_settings = _server_settings(settings) if provider == "openai" else {}
    try:
        from langchain.chat_models import init_chat_model
    except ImportError as error:
        raise DependencyError(
            f"The chat model {name!r} needs LangChain. Run: pip install 'casewright[chat]' and the "
            f"provider's package, for example langchain-{provider}"
        ) from error
    try:
        chat: BaseChatModel = init_chat_model(
            model, model_provider=provider, **{"temperature": 0, **server_settings, **settings}
        )
    except ImportError as error:
        raise DependencyError(
            f"The chat model {name!r} needs its provider's package: {one_line(error)}"
        ) from error
    except Exception as error:  # a provider may raise any error for its settings
        # LangChain's message lists all providers.
        reason = textwrap.shorten(one_line(error), 250, placeholder=" …")
        raise InputError(f"The chat model {name!r} cannot be used: {reason}") from error
    return chat


def _server_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Return ``base_url`` and, without a key, a placeholder key; empty without an address."""
    base_url = settings.get("base_url", settings.get("openai_api_base"))
    variables = {name: os.environ.get(name) for name in _ADDRESS_VARIABLES}
    addresses = {"base_url": base_url, **variables}.items()
    name, address = next(((name, url) for name, url in addresses if url), ("", ""))
    if not address:
        return {}
    parts = urlsplit(str(address))
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise InputError(
            f"{name} is {cleaned(str(address))!r}, not a URL. Write it in full, for example "
            "http://localhost:8000/v1."
        )
    has_key = os.environ.get("OPENAI_API_KEY") or {"api_key", "openai_api_key"} & set(settings)
    # A server that needs a key rejects the placeholder with a message.
    return {"base_url": address} | ({} if has_key else {"api_key": _PLACEHOLDER_KEY})


def ask(
    model: Runnable[Any, Any], messages: Sequence[MessageLikeRepresentation], seconds: float
) -> Any:
    """Return the model's answer, a message; raise ``TimeoutError`` after ``seconds``.

    The ``messages`` are LangChain's, or pairs of a role and a text.
    """
    return call_within(lambda: model.invoke(list(messages)), max(seconds, 0.0))


async def aask(model: BaseChatModel, messages: Sequence[BaseMessage], seconds: float) -> Any:
    """Return the model's answer, a message, without blocking the event loop.

    A synchronous model is called in a daemon thread: LangChain would use a thread of the event
    loop's executor, and a process waits for these threads at its end. Raise ``TimeoutError`` after
    ``seconds``, even if the call ignores its cancellation.
    """
    from langchain_core.language_models import BaseChatModel, SimpleChatModel

    def invoke_in_thread() -> asyncio.Future[Any]:
        return asyncio.wrap_future(start_daemon(lambda: model.invoke(list(messages))))

    async def invoke_async() -> Any:
        try:
            return await model.ainvoke(list(messages))
        except SystemExit as error:
            # A task that raises SystemExit would end the event loop.
            raise RuntimeError("The model raised SystemExit.") from error
        except RuntimeError as error:
            if str(error) != "Event loop is closed":
                raise
            # All models of one address share an async client. One of the client's connections
            # belongs to an event loop that has ended. The synchronous client needs no event loop.
            return await invoke_in_thread()

    async_method = getattr(type(model), "_agenerate", None)
    is_blocking = async_method in (BaseChatModel._agenerate, SimpleChatModel._agenerate)
    return await await_within(invoke_in_thread() if is_blocking else invoke_async(), seconds)


def chat_text(model: BaseChatModel) -> Chat:
    """Return a function that calls a model and raises ``InputError`` if the model fails."""

    def answer(messages: Sequence[tuple[str, str]]) -> str:
        try:
            return str(ask(model, messages, ANSWER_SECONDS).text)
        except Exception as error:
            raise InputError(failure_text(model, error)) from error

    return answer


def token_counts(message: Any) -> dict[str, int]:
    """Return the token counts ``input`` and ``output`` of a model's message; empty if unknown."""
    usage = getattr(message, "usage_metadata", None) or {}
    names = ("input", "output") if usage else ()
    return {name: int(usage.get(f"{name}_tokens") or 0) for name in names}


def failure_text(model: BaseChatModel, error: BaseException) -> str:
    """Return a sentence with the model's server and the reason of the failure, without secrets.

    A client's error may say only "Connection error.", while the error's causes say that the server
    refused or that the host is unknown. Clients also omit a server's message if they do not know
    the message's format.
    """
    message, cause = one_line(error), _root_cause(error)
    if _STATUS_ONLY.fullmatch(str(error)) and (response_text := _response_text(error)):
        message = f"{message} - {response_text}"
    if str(cause) not in str(error):
        message = f"{message.rstrip('.')} ({one_line(cause)})"
    return f"The model{at_server(model, error)} failed: {message}"


def at_server(model: BaseChatModel, error: BaseException | None = None) -> str:
    """Return " at URL", from the model's settings or else from the error; "" without a URL."""
    for field in _URL_FIELDS:
        if isinstance(value := getattr(model, field, None), str) and value:
            return f" at {cleaned(value)}"
    url = getattr(getattr(error, "request", None), "url", None)
    return f" at {cleaned(str(url))}" if url else ""


def _response_text(error: BaseException) -> str:
    text = getattr(getattr(error, "response", None), "text", "")
    return cleaned(text, 200) if isinstance(text, str) else ""


def _root_cause(error: BaseException) -> BaseException:
    """Return the deepest cause that has a text, or the error itself."""
    causes = [error]
    while (cause := causes[-1].__cause__) is not None and cause not in causes:
        causes.append(cause)
    return next((cause for cause in reversed(causes) if str(cause).strip()), error)
