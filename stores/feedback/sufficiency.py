"""A judge of sufficiency: the probability that a search's passages answer the question.

A passage on the question's subject has a high relevance even if it does not answer the question; a
passage may also have the question's words by chance. The feature is therefore a product: the share
of the question's words in a passage, times its relevance. A logistic regression turns it into a
probability; ``casewright bench documents --fit`` trains it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from casewright.stores.feedback.features import STOPWORDS
from casewright.stores.feedback.offline_judge import Regression
from casewright.stores.hit import Hit

FILE = "sufficiency.json"
FEATURE = "covered_relevance"
#: Maximum number of passages that are judged: those that an answer may quote.
MAX_PASSAGES = 5
#: Weight of the share of the question's words, added to the relevance, in the order of passages.
WORDS_WEIGHT = 0.4

#: Words of questions that an answer need not repeat, stop words included.
_IGNORED = STOPWORDS | {"often", "must", "many", "much", "long", "far", "need"}
_WORD = re.compile(r"[^\W_]+")
_ENDING = re.compile(r"(?<=\w{3})(?:ing|ies|es|ed|e|s|y)$")


@dataclass(frozen=True, slots=True)
class SufficiencyJudge:
    """A trained judge; ``training`` has the data and settings of the training."""

    regression: Regression
    training: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def shipped(cls) -> SufficiencyJudge:
        """Return the judge that comes with the package, read once."""
        return _shipped()

    def save(self, file: Path) -> None:
        """Write the judge as JSON."""
        content = {**self.regression.to_json(), "training": self.training}
        file.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    def probability(self, question: str, hits: Sequence[Hit]) -> float:
        """Return the probability that the first hits answer the question; 0 without hits."""
        row = np.array([[covered_relevance(question, hits)]])
        return float(self.regression.probabilities(row, [FEATURE])[0]) if hits else 0.0

    def answers(self, question: str, hits: Sequence[Hit]) -> bool:
        """Return ``True`` if the first hits probably answer the question."""
        return self.probability(question, hits) >= self.regression.threshold


def ranked_by_words(question: str, hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits ordered by relevance and the share of the question's words."""
    return sorted(hits, key=lambda hit: -(hit.relevance + WORDS_WEIGHT * _coverage(question, hit)))


def covered_relevance(question: str, hits: Sequence[Hit]) -> float:
    """Return the judge's feature of the first hits, from 0 to 1."""
    values = (hit.relevance * _coverage(question, hit) for hit in hits[:MAX_PASSAGES])
    return max(0.0, *values) if hits else 0.0


def _coverage(question: str, hit: Hit) -> float:
    """Return the share of a question's words that a passage, its title or file name has."""
    words = content_words(question)
    problem, source = hit.case.problem, hit.case.metadata.get("source", "")
    text = f"{problem.get('title', '')} {source} {hit.case.solution}"
    return len(words & content_words(text)) / len(words) if words else 1.0


def content_words(text: str) -> frozenset[str]:
    """Return the words of a text in lower case, without stop words and endings."""
    words = (word for word in _WORD.findall(text.lower()) if word not in _IGNORED)
    return frozenset(_ENDING.sub("", word) for word in words)


@cache
def _shipped() -> SufficiencyJudge:
    content = json.loads(files(__package__).joinpath(FILE).read_text(encoding="utf-8"))
    training = content.pop("training")
    return SufficiencyJudge(Regression(**content), training)
