"""Fitting logistic regressions by scikit-learn, and what is kept of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.errors import DependencyError
from casewright.finetune.baselines.settings import ClassifierSettings

Floats = NDArray[np.float32]
#: Where a regression's gradient is small enough: more changes no plan.
_TOLERANCE = 1e-3


def fit_regression(
    features: Any, labels: Sequence[bool] | NDArray[np.bool_], settings: ClassifierSettings
) -> Floats:
    """Fit one regression; the same numbers give the same weights.

    Args:
        features: Array (n, columns), sparse or dense.
        labels: n of them, both values among them.
        settings: Penalty and iterations.

    Returns:
        The weights and behind them the intercept, array (columns + 1,).

    Raises:
        DependencyError: scikit-learn is not installed.
    """
    import warnings

    try:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression
    except ImportError as error:
        raise DependencyError(
            "Training classifiers needs scikit-learn. Run: pip install 'casewright[finetune]'"
        ) from error
    model = LogisticRegression(
        C=settings.strength, tol=_TOLERANCE, max_iter=settings.iterations, solver="lbfgs"
    )
    with warnings.catch_warnings():
        # Stopped early, it is a little more regular.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(features, np.asarray(labels, dtype=np.int64))
    fitted: Floats = np.append(model.coef_[0], model.intercept_[0]).astype(np.float32)
    return fitted


def log_sigmoid(values: Floats) -> Floats:
    """Return the logarithm of the logistic function, without overflow."""
    found: Floats = -np.logaddexp(0, -values)
    return found
