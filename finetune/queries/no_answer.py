"""Answers of a chat model: a JSON object, or the reason that there is none."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from casewright.planner.chat_call import failure, place

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

#: Failures in a row after which a model gets no more requests.
MOST_FAILURES = 3


def no_answer(model: BaseChatModel, error: Exception, seconds: float) -> str:
    """Return a sentence that says which model gave no answer within the deadline, and why."""
    if isinstance(error, TimeoutError):
        return f"The model{place(model)} gave no answer within {seconds:g} s."
    return failure(model, error).rstrip(".") + "."


def json_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object of an answer, which may stand between words or code fences."""
    try:
        value = json.loads(text[text.find("{") : text.rfind("}") + 1])
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
