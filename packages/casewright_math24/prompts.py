"""Prompts for a puzzle: without a hint, with a general hint, or with plans of the nearest cases.

A plan is a class of a case: a larger factor, and the places of the two numbers that make it. The
three kinds of prompt have MCBR-RAG's contexts (section 5.1, Table 2), but not the paper's words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from casewright.planner.chat_call import Chat
from casewright_math24.answer import FINAL, Check, check, final_answer
from casewright_math24.decomposition import LARGER_FACTORS, Class
from casewright_math24.puzzle import GOAL, Problem
from casewright_mcbr.dialogue import dialogue

ContextKind = Literal["none", "general", "top"]
CONTEXT_KINDS: tuple[ContextKind, ...] = ("none", "general", "top")

ROLE = f"""You solve puzzles of the game Math-24: four numbers are to make {GOAL}.
Use each of the four numbers exactly once, with + - * / and brackets, and no other number.
End with one line in plain text that has the whole expression, for example for 1 2 9 13:
{FINAL} (13 + 9 + 2) * 1 = {GOAL}
The line must have all four numbers in one expression; nothing else is read."""


def question(problem: Problem) -> str:
    """Return the puzzle as a question."""
    return f"Make {GOAL} of these four numbers: {' '.join(map(str, problem))}"


def prompt(problem: Problem, kind: ContextKind, plans: Sequence[Class] = ()) -> str:
    """Return the user's prompt: without a hint, with a general hint, or (``top``) with plans."""
    if kind == "none":
        return question(problem)
    if kind == "top":
        hint = "\nor\n".join(_plan_hint(problem, plan) for plan in plans)
    else:
        larger = ", ".join(map(str, LARGER_FACTORS))
        smaller = ", ".join(str(GOAL // factor) for factor in LARGER_FACTORS)
        hint = (
            f"Let two of the numbers make one of {larger}, and the other two make {smaller} in "
            f"that order. The product of the two is {GOAL}."
        )
    return f"{question(problem)}\n\nA hint that may help:\n{hint}"


def correction(verdict: Check) -> str:
    """Return the message to a chat model after a wrong attempt."""
    return f"{verdict.expression or 'Your answer'} is not right. {verdict.why} Try once more."


def chat_attempts(chat: Chat, query: str, problem: Problem) -> Iterator[str]:
    """Yield the expression in each answer of a chat model, or an empty text, without end.

    The model gets the prompt ``query``, and after each answer the text that ``correction`` returns.
    """

    def next_message(answer: str) -> str:
        return correction(check(final_answer(answer), problem))

    return map(final_answer, dialogue(chat, ROLE, query, next_message))


def _plan_hint(problem: Problem, plan: Class) -> str:
    larger, first, second = plan
    smaller = GOAL // larger
    return (
        f"Make {larger} of {problem[first]} and {problem[second]}; if that fails, make {larger} "
        f"of another pair. Make {smaller} of the other two. Then {larger} * {smaller} = {GOAL}."
    )
