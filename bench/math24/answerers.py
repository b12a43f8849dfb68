"""Who answers a puzzle: the case's plan carried over, or a chat model."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from casewright.bench.math24.answers import Answer
from casewright.domains.math24.answer import check, final_answer
from casewright.domains.math24.decomposition import Class
from casewright.domains.math24.prompts import ROLE, Kind, prompt, second
from casewright.domains.math24.puzzle import Problem
from casewright.domains.math24.reuse import attempts
from casewright.planner.chat_call import ask
from casewright.planner.chat_failure import failure

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage

#: What is carried over where no case is asked: always the same plan, the trivial answer.
TRIVIAL: Class = (24, 2, 3)
#: Deadline of a chat model's answer, in seconds.
SECONDS = 120.0


def reuse(problem: Problem, kind: Kind, plans: Sequence[Class], tries: int) -> bool:
    """Answer by the plans of the nearest cases; without a case there is nothing to carry over."""
    if kind == "none":
        return False
    own = plans if kind == "top" else (TRIVIAL,)
    return any(check(made, problem).right for made in islice(attempts(problem, own), tries))


def by_chat(model: BaseChatModel) -> Answer:
    """Return an answerer that asks a chat model, and tells it what was wrong with a first try."""
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

    def answer(problem: Problem, kind: Kind, plans: Sequence[Class], tries: int) -> bool:
        messages: list[BaseMessage] = [
            SystemMessage(ROLE),
            HumanMessage(prompt(problem, kind, plans)),
        ]
        for _ in range(tries):
            try:
                said = str(ask(model, messages, SECONDS).text)
            except Exception as error:
                from casewright.errors import InputError

                raise InputError(failure(model, error)) from error
            told = check(final_answer(said), problem)
            if told.right:
                return True
            messages += [AIMessage(said), HumanMessage(second(told))]
        return False

    return answer
