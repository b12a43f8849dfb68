"""Fitting a logistic regression by scikit-learn, and what is kept of one."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from casewright.errors import DependencyError
from casewright.finetune.section import Section


class ClassifierSettings(Section):
    """How the classifiers and their separate argument step are trained.

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
