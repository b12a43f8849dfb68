"""How demonstrations, a question and its answer read to a language model that completes text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from casewright.errors import InputError
from casewright.finetune.demonstrations.asked import Demonstration

_FIELD = re.compile(r"\{(question|answer)\}")


@dataclass(frozen=True, slots=True)
class QuestionForm:
    """The form of a prompt, by default that of TruthfulQA's own evaluation (Lin et al. 2022).

    ``{question}`` and ``{answer}`` stand for the texts.

    Attributes:
        demonstration: One of the questions before, with its answer.
        question: The question that is asked.
        answer: What follows it. It begins with the space, as tokenizers join it to a word.
        opening: What stands before all of it.

    Raises:
        InputError: A part lacks what it is the form of.
    """

    demonstration: str = "Q: {question}\nA: {answer}\n\n"
    question: str = "Q: {question}\nA:"
    answer: str = " {answer}"
    opening: str = ""

    def __post_init__(self) -> None:
        needed = {
            "demonstration": ("{question}", "{answer}"),
            "question": ("{question}",),
            "answer": ("{answer}",),
        }
        for name, fields in needed.items():
            if lacking := [one for one in fields if one not in getattr(self, name)]:
                raise InputError(f"The form's {name} has no {' and no '.join(lacking)}. Add it.")

    def context(self, question: str, demonstrations: Sequence[Demonstration]) -> str:
        """Return all that stands before an answer."""
        shown = "".join(self.shown(one) for one in demonstrations)
        return f"{self.opening}{shown}{_filled(self.question, question, '')}"

    def shown(self, demonstration: Demonstration) -> str:
        """Return a demonstration as a prompt shows it."""
        return _filled(self.demonstration, demonstration.question, demonstration.answer)

    def answered(self, answer: str) -> str:
        """Return an answer as it follows the question."""
        return _filled(self.answer, "", answer)


def _filled(form: str, question: str, answer: str) -> str:
    # At once: a question may hold "{answer}" itself.
    texts = {"question": question, "answer": answer}
    return _FIELD.sub(lambda found: texts[found.group(1)], form)
