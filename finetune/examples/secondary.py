"""What the secondary tasks share: a query's prompt, an instruction before it, and the answer."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from casewright.finetune.examples.heads import prompt_of
from casewright.finetune.examples.tevo import Evolved
from casewright.planner import Prompt


@dataclass(frozen=True, slots=True)
class Posed:
    """A task posed for one query: its prompt, and the one answer that is right."""

    prompt: Prompt
    completion: str


@dataclass(frozen=True, slots=True)
class Subject:
    """A query that tasks are posed about.

    Attributes:
        evolved: With its request and plan.
        prompt: The planner's own for it, without plan cases.
    """

    evolved: Evolved
    prompt: Prompt

    @classmethod
    def of(cls, evolved: Evolved) -> Subject:
        """Render the planner's prompt."""
        return cls(evolved, prompt_of(evolved.request))

    @property
    def context(self) -> str:
        """The line of the prompt that shows the context."""
        # It is JSON, which holds no line break.
        return self.prompt.tail.partition("\n\nQuestion: ")[0]

    @property
    def question(self) -> str:
        """The part of the prompt that shows the question."""
        return "Question: " + self.evolved.query.query


#: Poses a task, or returns ``None`` where it does not apply to the query.
Task = Callable[[Subject, random.Random], Posed | None]

#: What hides a part of a plan.
MASKS = ("[MASK]", "___", "<missing>", "???")


def instructed(prompt: Prompt, instruction: str, given: str = "") -> Prompt:
    """Return a prompt with an instruction before its tail.

    Args:
        prompt: The planner's own.
        instruction: What is to be done.
        given: What it is to be done with, such as a part of the plan.
    """
    return Prompt(prompt.head, "\n\n".join(filter(None, (instruction, given, prompt.tail))))
