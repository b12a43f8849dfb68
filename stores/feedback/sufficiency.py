"""The judge of sufficiency: a search's passages answer the question, or they do not.

A passage of the right subject is near to a question that it does not answer; one that has the
question's words by chance is far from it. The product of both tells answerable questions from
others: the share of the question's words in a passage, times its relevance. A logistic regression
makes a probability of it; ``casewright bench documents --fit`` trains it.
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
#: Passages that are judged: those that an answer may quote.
JUDGED = 5
#: What the share of the question's words adds to a passage's relevance in their order.
WORDS = 0.4

#: Words of questions that no answer repeats, beside the stop words.
_ASKING = STOPWORDS | {"often", "must", "many", "much", "long", "far", "need"}
_WORD = re.compile(r"[^\W_]+")
_ENDING = re.compile(r"(?<=\w{3})(?:ing|ies|es|ed|e|s|y)$")


@dataclass(frozen=True, slots=True)
class SufficiencyJudge:
    """A trained judge; ``training`` says on what."""

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
        """Return ``True`` if the first hits answer the question, as far as can be told."""
        return self.probability(question, hits) >= self.regression.threshold


def by_words(question: str, hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits with those first that are relevant and have the question's words."""
    return sorted(hits, key=lambda hit: -(hit.relevance + WORDS * _coverage(question, hit)))


def covered_relevance(question: str, hits: Sequence[Hit]) -> float:
    """Return the judge's feature of the first hits, from 0 to 1."""
    values = (hit.relevance * _coverage(question, hit) for hit in hits[:JUDGED])
    return max(0.0, *values) if hits else 0.0


def _coverage(question: str, hit: Hit) -> float:
    """Return the share of a question's words that a passage, its title or file name has."""
    words = content_words(question)
    problem, source = hit.case.problem, hit.case.metadata.get("source", "")
    text = f"{problem.get('title', '')} {source} {hit.case.solution}"
    return len(words & content_words(text)) / len(words) if words else 1.0


def content_words(text: str) -> frozenset[str]:
    """Return the words of a text without stop words and endings, in small letters."""
    found = (word for word in _WORD.findall(text.lower()) if word not in _ASKING)
    return frozenset(_ENDING.sub("", word) for word in found)


@cache
def _shipped() -> SufficiencyJudge:
    content = json.loads(files(__package__).joinpath(FILE).read_text(encoding="utf-8"))
    training = content.pop("training")
    return SufficiencyJudge(Regression(**content), training)
