"""The ensemble: binary classifiers over a question, joined to a plan shape that was seen.

What REAPER calls the status quo (Joshi et al. 2024): classifiers choose where to look things up,
and each choice stands for a fixed plan. At its best such a system has a workflow for everything
that its training data shows. So its classifiers' probabilities are joined to the likeliest of the
plan shapes of the training queries, and it can write no other: a combination that no query had, or
a tool that a request brings along, is out of its reach.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.finetune.baselines.plan_labels import plan_labels
from casewright.finetune.baselines.question_features import QuestionFeatures
from casewright.finetune.baselines.regression import fit_regression, log_sigmoid
from casewright.finetune.baselines.settings import ClassifierSettings
from casewright.planner import AnnotatedQuery, Plan, PlanRequest, parse_plan
from casewright.planner.plan_cases import runnable
from casewright.planner.shape import shape


@dataclass(frozen=True, slots=True)
class PlanEnsemble:
    """Binary classifiers, and the plan shapes that they vote for.

    Attributes:
        features: How a request becomes numbers.
        labels: What each classifier says of a plan; see ``plan_labels``.
        weights: Theirs and their intercepts, array (labels, columns + 1).
        shapes: Plans with their literals left open.
        described: Which labels each shape has, array (shapes, labels).
        counts: How many queries have each, array (shapes,).
        prior: How much the logarithm of a count counts.
    """

    features: QuestionFeatures
    labels: tuple[str, ...]
    weights: NDArray[np.float32]
    shapes: tuple[Plan, ...]
    described: NDArray[np.bool_]
    counts: NDArray[np.int64]
    prior: float

    @classmethod
    def fit(
        cls,
        queries: Sequence[AnnotatedQuery],
        vectors: NDArray[np.float32],
        settings: ClassifierSettings,
    ) -> PlanEnsemble:
        """Train a classifier for every label that some queries' plans have and some have not.

        Args:
            queries: With their gold plans.
            vectors: Embeddings of their questions, array (queries, dimension).
            settings: How.
        """
        questions = [query.query for query in queries]
        contexts = [query.record.context for query in queries]
        features = QuestionFeatures.of(questions, contexts, vectors.shape[1], settings)
        rows = features.matrix(questions, vectors, contexts)
        held = [plan_labels(query.plan) for query in queries]
        counts = Counter(label for own in held for label in own)
        least = settings.least
        learned = sorted(n for n, count in counts.items() if least <= count <= len(held) - least)
        weights = [fit_regression(rows, [n in own for own in held], settings) for n in learned]
        seen = Counter(shape(query.plan) for query in queries)
        shapes = tuple(parse_plan(text) for text in seen)
        return cls(
            features,
            tuple(learned),
            np.stack(weights) if weights else np.zeros((0, rows.shape[1] + 1), np.float32),
            shapes,
            np.array([[name in plan_labels(plan) for name in learned] for plan in shapes], bool),
            np.array(list(seen.values())),
            settings.prior,
        )

    def ranked(self, request: PlanRequest, vector: NDArray[np.float32]) -> Iterator[Plan]:
        """Yield the shapes whose tools and context fields the request has, the likeliest first.

        Args:
            request: What is asked.
            vector: The question's embedding, array (dimension,).
        """
        scores = self._scores(request.question, vector, request.context)
        for place in np.argsort(-scores, kind="stable"):
            if runnable(self.shapes[place], request):
                yield self.shapes[place]

    def _scores(
        self, question: str, vector: NDArray[np.float32], context: Mapping[str, Any]
    ) -> NDArray[np.float64]:
        """Return each shape's log-probability, but for a constant.

        The classifiers are taken for independent of each other, as in naive Bayes.
        """
        row = self.features.matrix([question], vector[None], [context])
        said = row @ self.weights[:, :-1].T + self.weights[:, -1]
        votes = np.where(self.described, log_sigmoid(said), log_sigmoid(-said)).sum(axis=1)
        return np.asarray(votes + self.prior * np.log(self.counts), dtype=np.float64)
