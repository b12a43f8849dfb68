"""Why a chat model gave nothing: what its client says, what lay beneath it, and where it runs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from casewright.errors import cleaned, told

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

#: What openai's client says of an answer whose words it does not understand.
_BARE = re.compile(r"Error code: [0-9]+")
#: How providers' classes call the address that they were given.
_ADDRESSES = ("openai_api_base", "base_url", "anthropic_api_url", "azure_endpoint", "endpoint_url")


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
    return next((one for one in reversed(seen) if str(one).strip()), error)
