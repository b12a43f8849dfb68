"""Which cases each selection shows before each question, and how unlike each other they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from casewright.finetune.demonstrations.asked import Asked, Demonstration
from casewright.finetune.demonstrations.judged import CaseReading, JudgedQuestion
from casewright.stores import CaseStore, Hit, MarginalSelector
from casewright.stores.progress import progress_bar


@dataclass(frozen=True, slots=True)
class Shown:
    """What is shown before a question.

    Attributes:
        demonstrations: In the order of the prompt: the best last, next to the question, as a
            planner's prompt has its plan cases.
        cosine: Mean cosine of its pairs, each facet by its weight; ``None`` where there are none.
    """

    demonstrations: tuple[Demonstration, ...] = ()
    cosine: float | None = None

    def asked(self, question: JudgedQuestion) -> Asked:
        """Return the question with these before it."""
        return Asked(question.question, question.answers, self.demonstrations)


def shown_by(
    store: CaseStore,
    selector: MarginalSelector,
    questions: Sequence[JudgedQuestion],
    k: int,
    reading: CaseReading,
    *,
    progress: bool | None = None,
) -> list[Shown]:
    """Select for each question by the selector that a planner is given, question by question."""
    found = []
    label = f"Selecting, λ_d {selector.lambda_d:g}, λ_b {selector.lambda_b:g}"
    with progress_bar(label, len(questions), show=progress) as advance:
        for question in questions:
            hits = selector.select(store, question.question, k, question.where).hits
            chosen = tuple(reading.demonstration(hit.case) for hit in reversed(hits))
            found.append(Shown(chosen, mean_cosine(hits, store, selector)))
            advance(1)
    return found


def shown_at_random(
    store: CaseStore,
    questions: Sequence[JudgedQuestion],
    k: int,
    reading: CaseReading,
    seed: int = 0,
) -> list[Shown]:
    """Draw cases for each question, of those that may be shown before it: a control."""
    cases = store.all()
    draw = np.random.default_rng(seed)
    found = []
    for question in questions:
        chosen: list[Demonstration] = []
        # Most cases may be shown: to look through a permutation ends soon.
        for place in draw.permutation(len(cases)):
            if len(chosen) == k:
                break
            if question.may_see(cases[place]):
                chosen.append(reading.demonstration(cases[place]))
        found.append(Shown(tuple(chosen)))
    return found


def mean_cosine(hits: Sequence[Hit], store: CaseStore, selector: MarginalSelector) -> float | None:
    """Return the mean cosine of the pairs of hits, as the selection's redundancy weighs it."""
    if len(hits) < 2:
        return None
    shares = store.schema.weights(selector.weights)
    spread = np.repeat(shares, [facet.dimension for facet in store.schema.facets])
    vectors = np.stack([hit.vector for hit in hits]).astype(np.float64)
    likeness = (vectors * spread) @ vectors.T
    return float(likeness[np.triu_indices(len(hits), 1)].mean())
