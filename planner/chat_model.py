"""Chat models by ``provider:model`` names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from casewright.errors import DependencyError, InputError, told

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


def chat_model(name: str, **settings: Any) -> BaseChatModel:
    """Return the chat model of a name such as ``openai:gpt-4o-mini`` or ``ollama:mistral``.

    Args:
        name: Provider and model; the provider's own settings (keys, URLs) come from its
            environment variables.
        settings: Passed on, for example ``temperature``.

    Raises:
        InputError: The name has another form, or the provider is unknown or misconfigured.
        DependencyError: ``langchain`` or the provider's package is not installed.
    """
    provider, _, model = name.partition(":")
    if not provider or not model:
        raise InputError(
            f"{name!r} names no chat model. Write provider:model, for example openai:gpt-4o-mini."
        )
    try:
        from langchain.chat_models import init_chat_model
    except ImportError as error:
        raise DependencyError(
            f"The chat model {name!r} needs LangChain. Run: pip install 'casewright[chat]' and the "
            f"provider's package, for example langchain-{provider}"
        ) from error
    try:
        made: BaseChatModel = init_chat_model(
            model, model_provider=provider, **{"temperature": 0, **settings}
        )
    except ImportError as error:
        raise DependencyError(
            f"The chat model {name!r} needs its provider's package: {told(error)}"
        ) from error
    except Exception as error:  # a provider may refuse its settings in any way
        raise InputError(f"The chat model {name!r} cannot be used: {told(error)}") from error
    return made
