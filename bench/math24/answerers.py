"""Who answers a puzzle: the case's plan carried over, or a chat model."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from casewright.bench.math24.answers import Answer
from casewright.domains.math24.answer import check
from casewright.domains.math24.decomposition import Class
from casewright.domains.math24.dialogue import tries
from casewright.domains.math24.prompts import Kind, prompt
from casewright.domains.math24.puzzle import Problem
from casewright.domains.math24.reuse import attempts
from casewright.planner.chat_text import chat_text

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

#: What is carried over where no case is asked: always the same plan, the trivial answer.
TRIVIAL: Class = (24, 2, 3)


def reuse(problem: Problem, kind: Kind, plans: Sequence[Class], most: int) -> bool:
    """Answer by the plans of the nearest cases; without a case there is nothing to carry over."""
    if kind == "none":
        return False
    own = plans if kind == "top" else (TRIVIAL,)
    return any(check(made, problem).right for made in islice(attempts(problem, own), most))


def by_chat(model: BaseChatModel) -> Answer:
    """Return an answerer that asks a chat model, and tells it what was wrong with a first try."""

    chat = chat_text(model)

    def answer(problem: Problem, kind: Kind, plans: Sequence[Class], most: int) -> bool:
        made = tries(chat, prompt(problem, kind, plans), problem)
        return any(check(one, problem).right for one in islice(made, most))

    return answer
