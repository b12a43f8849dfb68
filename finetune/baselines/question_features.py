"""Features of requests, and logistic regressions with scikit-learn."""

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
from scipy.sparse import csr_array, hstack

from casewright.errors import DependencyError
from casewright.finetune.neighbours import present_fields

Floats = NDArray[np.float32]
#: Norms of two parts of a question's features: embedding, and TF-IDF of words and bigrams.
EMBEDDING_SCALE, WORDS_SCALE = 12.0, 16.0
#: A context field or a label needs ``MIN_COUNT`` queries, a word or bigram ``MIN_WORD_COUNT``.
MIN_COUNT, MIN_WORD_COUNT = 10, 3
#: A regression's inverse L2 penalty (scikit-learn's ``C``), maximum number of iterations, and
#: tolerance of the gradient; a lower tolerance changes no plan.
INVERSE_PENALTY, MAX_ITERATIONS, TOLERANCE = 1.0, 100, 1e-3


def fit_regression(features: Any, labels: Sequence[bool]) -> Floats:
    """Return the weights and, last, the intercept of a logistic regression, array (columns + 1,).

    ``features`` (n, columns) is sparse or dense. Raise ``DependencyError`` without scikit-learn.
    """
    try:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression
    except ImportError as error:
        raise DependencyError(
            "A logistic regression needs scikit-learn. Run: pip install 'casewright[finetune]'"
        ) from error
    model = LogisticRegression(C=INVERSE_PENALTY, tol=TOLERANCE, max_iter=MAX_ITERATIONS)
    with warnings.catch_warnings():
        # A fit that stops early is as good: it is only regularised a little more.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(features, np.asarray(labels, dtype=np.int64))
    weights: Floats = np.append(model.coef_[0], model.intercept_[0]).astype(np.float32)
    return weights


_TOKEN = re.compile(r"\w+|\?")
#: Patterns whose counts grow with the number of sub-queries, and the maximum of each count.
_COUNTED_PATTERNS = ((re.compile(r"\?"), 3), (re.compile(r"[,.;!?]"), 6), (re.compile(r"\w+"), 40))


@dataclass(frozen=True, slots=True)
class QuestionFeatures:
    """The known words and bigrams with their IDF, and the known context fields."""

    idf: Mapping[str, float]
    fields: tuple[str, ...]

    @classmethod
    def of(
        cls, questions: Sequence[str], contexts: Sequence[Mapping[str, Any]]
    ) -> QuestionFeatures:
        """Return features with the words, bigrams and context fields that are frequent enough."""
        tokens = Counter(token for question in questions for token in _tokens(question))
        fields = Counter(field for context in contexts for field in present_fields(context))
        idf = {
            token: math.log(len(questions) / count)
            for token, count in sorted(tokens.items())
            if count >= MIN_WORD_COUNT
        }
        frequent_fields = sorted(name for name, count in fields.items() if count >= MIN_COUNT)
        return cls(idf, tuple(frequent_fields))

    @property
    def width(self) -> int:
        """The number of features, excluding the embedding."""
        return len(self.idf) + len(_COUNTED_PATTERNS) + len(self.fields)

    def matrix(
        self, questions: Sequence[str], vectors: Floats, contexts: Sequence[Mapping[str, Any]]
    ) -> csr_array:
        """Return the features of n requests, a sparse float32 array (n, dimension + ``width``).

        The columns are the embeddings ``vectors`` (n, dimension), words, counts and fields.
        """
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        # Not all encoders return unit vectors, and a vector may be zero.
        embeddings = EMBEDDING_SCALE * vectors / np.where(norms > 0, norms, 1)
        column_of = {word: index for index, word in enumerate(self.idf)}
        rows = [sorted(column_of.keys() & _tokens(question)) for question in questions]
        weights = [np.array([self.idf[w] for w in row], dtype=np.float32) for row in rows]
        # A question without a known word has the norm 0, and is not scaled.
        scaled = [WORDS_SCALE / (float(np.linalg.norm(row)) or 1.0) * row for row in weights]
        indices = [column_of[word] for row in rows for word in row]
        starts = np.cumsum([0, *map(len, rows)])
        words = csr_array((np.concatenate(scaled), indices, starts), (len(rows), len(column_of)))
        counts_and_fields = [
            [
                *(min(len(p.findall(question)), limit) / limit for p, limit in _COUNTED_PATTERNS),
                *(float(context.get(field) is not None) for field in self.fields),
            ]
            for question, context in zip(questions, contexts, strict=True)
        ]
        parts = [embeddings, words, np.array(counts_and_fields)]
        return hstack(parts, format="csr", dtype=np.float32)


def _tokens(question: str) -> set[str]:
    words = _TOKEN.findall(question.casefold())
    return {*words, *(f"{first} {second}" for first, second in pairwise(words))}
