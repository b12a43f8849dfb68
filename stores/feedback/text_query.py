"""The RepoGPT post's way: the question and the relevant texts, as one query."""

from __future__ import annotations

from dataclasses import dataclass

from casewright.stores.feedback.strategy import Feedback
from casewright.stores.question import Found, Question


@dataclass(frozen=True, slots=True)
class TextStrategy:
    """Embeds the question followed by all relevant texts, and searches for that.

    An encoder reads the beginning of a long query only (the packaged one 256 tokens), so that it
    sees little of what was found later.

    Source: the RepoGPT post on semi-supervised retrieval (2023).
    """

    name: str = "text"

    def search(self, question: Question, feedback: Feedback, k: int) -> list[Found]:
        """Search once; see ``Strategy``."""
        query = "\n".join([question.text, *(one.text for one in feedback.relevant)])
        return question.nearest(question.embed([query]), k, exclude=feedback.seen)
