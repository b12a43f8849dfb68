"""The question with one sentence of what was found at a time, all in one batch."""

from __future__ import annotations

import re
from dataclasses import dataclass

from casewright.stores.feedback.strategy import Feedback
from casewright.stores.question import Found, Question
from casewright.stores.select import check_counts

_END = re.compile(r"(?<=[.!?])\s+|\n+")
#: A shorter piece goes with the one after it: it says nothing by itself.
SHORT = 24


@dataclass(frozen=True, slots=True)
class SentenceStrategy:
    """Embeds the question followed by each sentence of the relevant texts, and searches for all.

    One sentence names what the next look-up is about; a whole text as a query is about itself. A
    case counts by the query that it is nearest to.

    Attributes:
        sentences: Most sentences of one text, the first ones.
        texts: Most texts: those of the last round, then those before, each in their order.

    Raises:
        InputError: A number is no whole number, or below 1.
    """

    sentences: int = 6
    texts: int = 3
    name: str = "sentences"

    def __post_init__(self) -> None:
        check_counts(1, sentences=self.sentences, texts=self.texts)

    def search(self, question: Question, feedback: Feedback, k: int) -> list[Found]:
        """Search in one batch; see ``Strategy``."""
        last_first = sorted(feedback.relevant, key=lambda one: -one.round)
        queries = [
            f"{question.text} {sentence}"
            for one in last_first[: self.texts]
            for sentence in pieces(one.text)[: self.sentences]
        ]
        wanted = list(dict.fromkeys(queries)) or [question.text]
        return question.nearest(question.embed(wanted), k, exclude=feedback.seen)


def pieces(text: str) -> list[str]:
    """Return a text's sentences and lines, short ones together with what follows."""
    made: list[str] = []
    held = ""
    for part in _END.split(text.strip()):
        held = f"{held} {part.strip()}".strip()
        if len(held) >= SHORT:
            made.append(held)
            held = ""
    if held:
        made.append(held)
    return made
