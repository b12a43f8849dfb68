"""A judge that computes the probability that a search's passages answer the question.

A passage on the question's subject has a high relevance even if it does not answer the question; a
passage may also have the question's words by chance. The first feature is therefore a product: the
share of the question's words that a passage has, weighted by rarity, times the passage's relevance.
The share is small if the question is long and the passage puts it in other words. The second
feature is therefore a number: how many of the question's words a passage has. The third feature is
the cross-encoder's log-odds that a passage answers the question (``stores/passages/search.py``). A
logistic regression, trained by ``casewright bench documents --fit``, computes the probability from
these features. Encoders without a cross-encoder use a regression with the first two features.
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

#: The names of the three features in a judge's file.
FEATURES = ("covered_relevance", "words", "answer")
#: The shipped judges' files, by the number of features.
FILES = {2: "sufficiency.json", 3: "sufficiency_answer.json"}
#: A question of fewer words counts as this long, since the training's questions are longer.
MIN_WORDS = 2
#: Maximum of the second feature, since any passage has some words of a long question.
MAX_WORDS = 3

#: Words of questions that an answer need not repeat, stop words included.
_IGNORED = STOPWORDS | {"often", "must", "many", "much", "long", "far", "need"}
_WORD = re.compile(r"[^\W_]+")
_ENDING = re.compile(r"(?<=\w{3})(?:ing|ies|es|ed|e|s|y)$")


@dataclass(frozen=True, slots=True)
class SufficiencyJudge:
    """A trained judge; ``training`` has figures about the training, for display."""

    regression: Regression
    training: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def shipped(cls, feature_count: int = len(FEATURES)) -> SufficiencyJudge:
        """Return the packaged judge that reads this number of features."""
        return _shipped(feature_count)

    def save(self, file: Path) -> None:
        """Write the judge as JSON."""
        content = {**self.regression.to_json(), "training": self.training}
        file.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    def is_sufficient(self, features: Sequence[float]) -> bool:
        """Return ``True`` for features, not all 0, of hits that probably answer the question."""
        names = FEATURES[: len(features)]
        [probability] = self.regression.probabilities(np.array([features]), names)
        return any(features) and bool(probability >= self.regression.threshold)


def hit_features(
    question: str, hits: Sequence[Hit], rarity: Callable[[str], float] | None = None
) -> tuple[float, float]:
    """Return the first two features of hits, from 0 to 1 and from 0 to ``MAX_WORDS``.

    ``rarity`` returns a word's weight, by default 1. Numbers in the question are ignored.
    """
    plain_words = (word for word in content_words(question) if not word.isdigit())
    weights = {word: rarity(word) if rarity else 1.0 for word in plain_words}
    shares = [_coverage(weights, hit) for hit in hits]
    products = (share * hit.relevance for share, hit in zip(shares, hits, strict=True))
    word_count = max((0.0, *shares)) * max(len(weights), MIN_WORDS)
    return max((0.0, *products)), min(word_count, MAX_WORDS)


def _coverage(weights: Mapping[str, float], hit: Hit) -> float:
    """Return the weighted share of these words that are in a passage, its title or file name."""
    problem, source = hit.case.problem, hit.case.metadata.get("source", "")
    passage_words = content_words(f"{problem.get('title', '')} {source} {hit.case.solution}")
    total = sum(weights.values())
    shared_words = weights.keys() & passage_words
    # If the question has no words, only the relevance counts: the share is 1.
    return sum(weights[word] for word in shared_words) / total if total else 1.0


def content_words(text: str) -> frozenset[str]:
    """Return a text's words in lower case, without their endings; stop words are left out."""
    return frozenset(word_stems(text))


def word_stems(text: str) -> list[str]:
    """Return the ``content_words`` of a text in the text's order, with repetitions."""
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
