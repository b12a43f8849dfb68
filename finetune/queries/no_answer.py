"""Answers of a chat model: a JSON object, or the reason that there is none."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from casewright.planner.chat_call import failure, place

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

#: A model that fails so often in a row is asked no more.
MOST_FAILURES = 3


def no_answer(model: BaseChatModel, error: Exception, seconds: float) -> str:
    """Return in one sentence which model gave no answer, and why.

    Args:
        seconds: How long it had, which a ``TimeoutError`` does not say.
    """
    if isinstance(error, TimeoutError):
        return f"The model{place(model)} gave no answer within {seconds:g} s."
    return failure(model, error).rstrip(".") + "."


def json_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object of an answer, whatever words and fences stand around it."""
    try:
        read = json.loads(text[text.find("{") : text.rfind("}") + 1])
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None
