"""A chat model as a plain function from messages to text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from casewright.errors import InputError
from casewright.planner.chat_call import ask
from casewright.planner.chat_failure import failure

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

#: Answers messages of a role (``system``, ``user``, ``assistant``) and a text, in their order.
Chat = Callable[[Sequence[tuple[str, str]]], str]
#: Deadline of an answer.
SECONDS = 120.0


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
