"""A judge of sufficiency: the probability that a search's passages answer the question.

A passage on the question's subject has a high relevance even if it does not answer the question; a
passage may also have the question's words by chance. The first feature is therefore a product: the
share of the question's words in a passage, weighted by rarity, times the passage's relevance. This
share is small if a long question uses other words than the passage; the second feature is therefore
the number of the question's words in a passage. The third is the log-odds that one of the passages
answers, by the cross-encoder (``stores/passages/search.py``). A logistic regression computes a
probability from these features; ``casewright bench documents --fit`` trains it. Another regression
has only the first two features, for encoders without a cross-encoder.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from casewright.stores.feedback.features import STOPWORDS
from casewright.stores.feedback.offline_judge import Regression
from casewright.stores.hit import Hit

FEATURES = ("covered_relevance", "words", "answer")
#: The shipped judges' files, by the number of features.
FILES = {2: "sufficiency.json", 3: "sufficiency_answer.json"}
#: A shorter question counts as so many words, since the training's questions are longer.
MIN_WORDS = 2
#: Maximum of the second feature, since any passage has some words of a long question.
MAX_WORDS = 3

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
    def shipped(cls, feature_count: int = len(FEATURES)) -> SufficiencyJudge:
        """Return the judge that comes with the package for a number of features, read once."""
        return _shipped(feature_count)

    def save(self, file: Path) -> None:
        """Write the judge as JSON."""
        content = {**self.regression.to_json(), "training": self.training}
        file.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    def is_sufficient(self, features: Sequence[float]) -> bool:
        """Return ``True`` if hits with these ``FEATURES`` probably answer the question."""
        names = FEATURES[: len(features)]
        [probability] = self.regression.probabilities(np.array([features]), names)
        return any(features) and bool(probability >= self.regression.threshold)


def hit_features(
    question: str, hits: Sequence[Hit], rarity: Callable[[str], float] | None = None
) -> tuple[float, float]:
    """Return the judge's first two ``FEATURES`` of hits: from 0 to 1, and from 0 to ``MAX_WORDS``.

    ``rarity`` weighs the question's words, by default equally; numbers do not count as words.
    """
    plain_words = (word for word in content_words(question) if not word.isdigit())
    weights = {word: rarity(word) if rarity else 1.0 for word in plain_words}
    shares = [_coverage(weights, hit) for hit in hits]
    products = (share * hit.relevance for share, hit in zip(shares, hits, strict=True))
    word_count = max((0.0, *shares)) * max(len(weights), MIN_WORDS)
    return max((0.0, *products)), min(word_count, MAX_WORDS)


def _coverage(weights: Mapping[str, float], hit: Hit) -> float:
    """Return the weighted share of the words that a passage, its title or file name has."""
    problem, source = hit.case.problem, hit.case.metadata.get("source", "")
    text = content_words(f"{problem.get('title', '')} {source} {hit.case.solution}")
    total = sum(weights.values())
    # A passage has all words of a question without words.
    return sum(weights[word] for word in weights.keys() & text) / total if total else 1.0


def content_words(text: str) -> frozenset[str]:
    """Return the words of a text without stop words and endings, in lower case."""
    return frozenset(word_stems(text))


def word_stems(text: str) -> list[str]:
    """Return the ``content_words`` of a text in its order, with repetitions."""
    return [_stem(word) for word in _WORD.findall(text.lower()) if word not in _IGNORED]


@lru_cache(maxsize=100_000)
def _stem(word: str) -> str:
    return _ENDING.sub("", word)


@cache
def _shipped(feature_count: int) -> SufficiencyJudge:
    file = files(__package__).joinpath(FILES[feature_count])
    content = json.loads(file.read_text(encoding="utf-8"))
    training = content.pop("training")
    return SufficiencyJudge(Regression(**content), training)
