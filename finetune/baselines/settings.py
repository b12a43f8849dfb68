"""Settings of the classifier baseline."""

from __future__ import annotations

from pydantic import Field

from casewright.finetune.recipe.section import Section


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
