"""Chat models by ``provider:model`` names."""

from __future__ import annotations

import os
import textwrap
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from casewright.errors import DependencyError, InputError, cleaned, told

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

#: Where langchain-openai looks for the address of a server, in its order.
_ADDRESSES = ("OPENAI_API_BASE", "OPENAI_BASE_URL")
#: What the client sends to a server of one's own where no key is set: it refuses to send none.
_NO_KEY = "none"


def chat_model(name: str, **settings: Any) -> BaseChatModel:
    """Return the chat model of a name such as ``openai:gpt-4o-mini`` or ``ollama:mistral``.

    Args:
        name: Provider and model; the provider's own settings (keys, URLs) come from its
            environment variables. ``openai`` reaches any OpenAI-compatible server by its address,
            ``base_url`` or ``OPENAI_BASE_URL``; such a server needs no key to be set.
        settings: Passed on, for example ``temperature``, ``base_url`` or ``max_tokens``.

    Raises:
        InputError: The name has another form, the address is no URL, or the provider is unknown or
            misconfigured.
        DependencyError: ``langchain`` or the provider's package is not installed.
    """
    provider, _, model = name.partition(":")
    if not provider or not model:
        raise InputError(
            f"{name!r} names no chat model. Write provider:model, for example openai:gpt-4o-mini."
        )
    own = _own_server(settings) if provider == "openai" else {}
    try:
        from langchain.chat_models import init_chat_model
    except ImportError as error:
        raise DependencyError(
            f"The chat model {name!r} needs LangChain. Run: pip install 'casewright[chat]' and the "
            f"provider's package, for example langchain-{provider}"
        ) from error
    try:
        chat: BaseChatModel = init_chat_model(
            model, model_provider=provider, **{"temperature": 0, **own, **settings}
        )
    except ImportError as error:
        raise DependencyError(
            f"The chat model {name!r} needs its provider's package: {told(error)}"
        ) from error
    except Exception as error:  # a provider may refuse its settings in any way
        # LangChain lists every provider there is.
        why = textwrap.shorten(told(error), 250, placeholder=" …")
        raise InputError(f"The chat model {name!r} cannot be used: {why}") from error
    return chat


def _own_server(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings for the OpenAI-compatible server that an address is given of, if one is.

    Raises:
        InputError: The address is no URL.
    """
    given = {"base_url": settings.get("base_url", settings.get("openai_api_base"))}
    named = {**given, **{name: os.environ.get(name) for name in _ADDRESSES}}
    source, address = next(((key, value) for key, value in named.items() if value), ("", ""))
    if not address:
        return {}
    parts = urlsplit(str(address))
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise InputError(
            f"{source} is {cleaned(str(address))!r}, not a URL. Write it whole, for example "
            "http://localhost:8000/v1."
        )
    keyed = os.environ.get("OPENAI_API_KEY") or {"api_key", "openai_api_key"} & set(settings)
    # One that needs a key refuses this one, and says so.
    return {"base_url": address} | ({} if keyed else {"api_key": _NO_KEY})
