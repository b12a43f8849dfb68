"""A dialogue in which a chat model corrects its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from casewright.planner.chat_call import Chat


def dialogue(chat: Chat, role: str, query: str, correction: Callable[[str], str]) -> Iterator[str]:
    """Yield the answers of a chat model, without end.

    Args:
        role: The system message.
        query: The first message of the user.
        correction: A function from the last answer to the user's next message.
    """
    messages = [("system", role), ("user", query)]
    while True:
        answer = chat(messages)
        yield answer
        messages += [("assistant", answer), ("user", correction(answer))]
