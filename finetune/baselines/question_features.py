"""Features of a request, and logistic regressions on them by scikit-learn."""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.sparse import csr_array, hstack

from casewright.errors import DependencyError
from casewright.finetune.section import Section


class ClassifierSettings(Section):
    """Settings of the classifiers and their separate argument step.

    Attributes:
        strength: Inverse of the L2 penalty of every regression, scikit-learn's ``C``.
        embedding_scale: Length of a question's embedding among its features.
        words_scale: Length of its words' part, TF-IDF of words and pairs of words.
        prior: How much the logarithm of a plan shape's number of queries counts beside the
            classifiers.
        least: Queries that a yes-or-no question about plans needs on either side to be learned.
        least_word: Queries that a word or a pair of words stands in to be a feature.
        iterations: Of a regression, at most.
    """

    strength: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    embedding_scale: float = Field(default=12.0, ge=0, allow_inf_nan=False)
    words_scale: float = Field(default=16.0, ge=0, allow_inf_nan=False)
    prior: float = Field(default=1.0, ge=0, allow_inf_nan=False)
    least: int = Field(default=10, ge=1)
    least_word: int = Field(default=3, ge=1)
    iterations: int = Field(default=100, ge=1)


Floats = NDArray[np.float32]
#: Where a regression's gradient is small enough: more changes no plan.
_TOLERANCE = 1e-3


def fit_regression(features: Any, labels: Sequence[bool], settings: ClassifierSettings) -> Floats:
    """Fit one regression; the same numbers give the same weights.

    Args:
        features: Array (n, columns), sparse or dense.

    Returns:
        The weights and behind them the intercept, array (columns + 1,).

    Raises:
        DependencyError: scikit-learn is not installed.
    """
    try:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression
    except ImportError as error:
        raise DependencyError(
            "Training classifiers needs scikit-learn. Run: pip install 'casewright[finetune]'"
        ) from error
    model = LogisticRegression(C=settings.strength, tol=_TOLERANCE, max_iter=settings.iterations)
    with warnings.catch_warnings():
        # Stopped early, it is a little more regular.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(features, np.asarray(labels, dtype=np.int64))
    fitted: Floats = np.append(model.coef_[0], model.intercept_[0]).astype(np.float32)
    return fitted


_TOKEN = re.compile(r"\w+|\?")
#: Counts that grow with the number of things asked, each with the count that is plenty.
_LENGTHS = ((re.compile(r"\?"), 3), (re.compile(r"[,.;!?]"), 6), (re.compile(r"\w+"), 40))


@dataclass(frozen=True, slots=True)
class QuestionFeatures:
    """Turns requests into rows of numbers.

    Attributes:
        rarity: Words and pairs of words, each with its inverse document frequency.
        settings: The lengths of the embedding's part and of the words'.
    """

    rarity: Mapping[str, float]
    fields: tuple[str, ...]
    settings: ClassifierSettings

    @classmethod
    def of(
        cls,
        questions: Sequence[str],
        contexts: Sequence[Mapping[str, Any]],
        settings: ClassifierSettings,
    ) -> QuestionFeatures:
        """Choose the words and fields that are frequent enough."""
        words = Counter(token for question in questions for token in _tokens(question))
        fields = Counter(field for context in contexts for field in _present(context))
        rarity = {
            token: math.log(len(questions) / count)
            for token, count in sorted(words.items())
            if count >= settings.least_word
        }
        frequent = sorted(name for name, count in fields.items() if count >= settings.least)
        return cls(rarity, tuple(frequent), settings)

    @property
    def width(self) -> int:
        """Numbers of a row, beside its embedding."""
        return len(self.rarity) + len(_LENGTHS) + len(self.fields)

    def matrix(
        self,
        questions: Sequence[str],
        vectors: Floats,
        contexts: Sequence[Mapping[str, Any]],
    ) -> csr_array:
        """Return one row a request: embedding, words, lengths, fields.

        Args:
            vectors: Their embeddings, array (n, dimension).

        Returns:
            Sparse array (n, dimension + ``width``) of float32.
        """
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        # No encoder promises unit vectors; a zero vector says nothing.
        units = self.settings.embedding_scale * vectors / np.where(lengths > 0, lengths, 1)
        columns = {word: index for index, word in enumerate(self.rarity)}
        results = [sorted(columns.keys() & _tokens(question)) for question in questions]
        rare = [np.array([self.rarity[w] for w in own], dtype=np.float32) for own in results]
        scaled = [
            self.settings.words_scale / (float(np.linalg.norm(own)) or 1.0) * own for own in rare
        ]
        places = [columns[word] for own in results for word in own]
        starts = np.cumsum([0, *map(len, results)])
        words = csr_array((np.concatenate(scaled), places, starts), (len(results), len(columns)))
        more = [
            [
                *(min(len(sign.findall(question)), most) / most for sign, most in _LENGTHS),
                *(float(field in _present(context)) for field in self.fields),
            ]
            for question, context in zip(questions, contexts, strict=True)
        ]
        return hstack([units, words, np.array(more)], format="csr", dtype=np.float32)


def _tokens(question: str) -> set[str]:
    words = _TOKEN.findall(question.casefold())
    return {*words, *(f"{first} {second}" for first, second in pairwise(words))}


def _present(context: Mapping[str, Any]) -> set[str]:
    return {field for field, value in context.items() if value is not None}
