"""The ensemble: binary classifiers over a question, joined to a plan shape that was seen.

What REAPER calls the status quo (Joshi et al. 2024): classifiers choose where to look things up,
and each choice stands for a fixed plan. At its best such a system has a workflow for everything
that its training data shows. So its classifiers' probabilities are joined to the likeliest of the
plan shapes of the training queries, and it can write no other: a combination that no query had, or
a tool that a request brings along, is out of its reach.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casewright.finetune.baselines.question_features import QuestionFeatures
from casewright.finetune.baselines.regression import ClassifierSettings, Floats, fit_regression
from casewright.planner import (
    AnnotatedQuery,
    Literal,
    Plan,
    PlanRequest,
    QuestionRef,
    parse_plan,
)
from casewright.planner.plan_cases import runnable
from casewright.planner.shape import feeds, shape


def plan_labels(plan: Plan) -> frozenset[str]:
    """Return what holds of a plan: what the classifiers are asked, yes-or-no questions.

    Of each tool: whether it is used, and more than once. Of each of its arguments: whether it is
    the question, words of it, a field of the context or another tool's result. Of the whole: how
    many steps are there for their own sake, since no other step needs their results.
    """
    counts = Counter(plan.tools)
    kinds = {QuestionRef: "question", Literal: "literal"}
    needed = {reference.step for step in plan.steps for reference in step.references()}
    asked = sum(number not in needed for number in range(1, len(plan.steps) + 1))
    return frozenset(
        [
            *(f"uses {tool}" for tool in counts),
            *(f"repeats {tool}" for tool, count in counts.items() if count > 1),
            *feeds(plan),
            *(
                f"{step.tool}.{name}<{kinds[type(value)]}"
                for step in plan.steps
                for name, value in step.arguments
                if type(value) in kinds
            ),
            f"asks {asked}",
        ]
    )


@dataclass(frozen=True, slots=True)
class PlanEnsemble:
    """Binary classifiers, and the plan shapes that they vote for.

    Attributes:
        labels: What each classifier says of a plan: those that some queries' plans have and some
            have not; see ``plan_labels``.
        described: Which labels each shape has, array (shapes, labels).
        counts: How many queries have each, array (shapes,).
        weights: The classifiers' and their intercepts, array (labels, columns + 1).
    """

    features: QuestionFeatures
    labels: tuple[str, ...]
    shapes: tuple[Plan, ...]
    described: NDArray[np.bool_]
    counts: NDArray[np.int64]
    weights: Floats

    @classmethod
    def untrained(
        cls, queries: Sequence[AnnotatedQuery], dimension: int, settings: ClassifierSettings
    ) -> PlanEnsemble:
        """Return what queries tell without a training; all weights are 0."""
        contexts = [query.record.context for query in queries]
        features = QuestionFeatures.of([query.query for query in queries], contexts, settings)
        counts = Counter(label for query in queries for label in plan_labels(query.plan))
        most = len(queries) - settings.least
        labels = sorted(n for n, count in counts.items() if settings.least <= count <= most)
        seen = Counter(shape(query.plan) for query in queries)
        shapes = tuple(parse_plan(text) for text in seen)
        described = [[name in plan_labels(plan) for name in labels] for plan in shapes]
        return cls(
            *(features, tuple(labels), shapes),
            np.array(described, bool),
            np.array(list(seen.values())),
            np.zeros((len(labels), dimension + features.width + 1), np.float32),
        )

    def fitted(self, queries: Sequence[AnnotatedQuery], vectors: Floats) -> Floats:
        """Return the weights of the classifiers, trained on these queries.

        Args:
            vectors: Embeddings of their questions, array (queries, dimension).
        """
        contexts = [query.record.context for query in queries]
        rows = self.features.matrix([query.query for query in queries], vectors, contexts)
        held = [plan_labels(query.plan) for query in queries]
        made = [
            fit_regression(rows, [name in own for own in held], self.features.settings)
            for name in self.labels
        ]
        return np.stack(made) if made else self.weights

    def ranked(self, request: PlanRequest, vector: Floats) -> Iterator[Plan]:
        """Yield the shapes whose tools and context fields the request has, the likeliest first.

        The classifiers are taken for independent of each other, as in naive Bayes.

        Args:
            vector: The question's embedding, array (dimension,).
        """
        row = self.features.matrix([request.question], vector[None], [request.context])
        said = row @ self.weights[:, :-1].T + self.weights[:, -1]
        # The logarithms of the logistic function, without overflow.
        votes = np.where(self.described, -np.logaddexp(0, -said), -np.logaddexp(0, said))
        scores = votes.sum(axis=1) + self.features.settings.prior * np.log(self.counts)
        for place in np.argsort(-scores, kind="stable"):
            if runnable(self.shapes[place], request):
                yield self.shapes[place]
