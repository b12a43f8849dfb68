"""A chat model tries, is told what was wrong, and tries again."""

from __future__ import annotations

from collections.abc import Iterator

from casewright_math24.answer import check, final_answer
from casewright_math24.prompts import ROLE, second
from casewright_math24.puzzle import Problem
from casewright.planner.chat_text import Chat


def tries(chat: Chat, query: str, problem: Problem) -> Iterator[str]:
    """Yield the expression of each try, without end; an empty one where an answer has none.

    Args:
        chat: The model.
        query: What it is asked first; see ``prompt``.
        problem: The numbers, by which a try is checked.
    """
    messages = [("system", ROLE), ("user", query)]
    while True:
        said = chat(messages)
        expression = final_answer(said)
        yield expression
        messages += [("assistant", said), ("user", second(check(expression, problem)))]
