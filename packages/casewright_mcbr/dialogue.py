"""A dialogue in which a chat model is told the error of each answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from casewright.planner.chat_call import Chat


def dialogue(chat: Chat, role: str, query: str, correction: Callable[[str], str]) -> Iterator[str]:
    """Yield the answers of a chat model without end.

    ``role`` is the system message, and ``query`` the user's first message. ``correction`` returns
    the user's next message after each answer; the caller stops after a right answer.
    """
    messages = [("system", role), ("user", query)]
    while True:
        answer = chat(messages)
        yield answer
        messages += [("assistant", answer), ("user", correction(answer))]
