"""Why a chat model gave no answer, in one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from casewright.planner.chat_failure import failure, place

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


def no_answer(model: BaseChatModel, error: Exception, seconds: float) -> str:
    """Return which model gave none, and why.

    Args:
        model: The model.
        error: What asking it ended by.
        seconds: How long it had, which a ``TimeoutError`` does not say.
    """
    if isinstance(error, TimeoutError):
        return f"The model{place(model)} gave no answer within {seconds:g} s."
    return failure(model, error).rstrip(".") + "."
