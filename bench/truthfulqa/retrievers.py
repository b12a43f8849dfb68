"""RAGSys's six retrievers, and what stands beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from casewright.finetune.demonstrations import Demonstration, JudgedQuestion
from casewright.finetune.demonstrations.judged import CaseReading
from casewright.finetune.demonstrations.shown import Shown, shown_at_random, shown_by
from casewright.stores import CaseStore, MarginalSelector
from casewright.stores.selectors import (
    BIAS,
    RELEVANCE,
    RELEVANCE_BIAS,
    RELEVANCE_DIVERSITY,
    RELEVANCE_DIVERSITY_BIAS,
)

PRIMER = "fixed primer"
SELECTORS: Mapping[str, MarginalSelector] = {
    "bias": BIAS,
    "relevance": RELEVANCE,
    "relevance, bias": RELEVANCE_BIAS,
    "relevance, diversity": RELEVANCE_DIVERSITY,
    "relevance, diversity, bias": RELEVANCE_DIVERSITY_BIAS,
}
NAMES = (PRIMER, *SELECTORS)
RANDOM = "cases drawn at random"
READING = CaseReading("question")


def all_shown(
    store: CaseStore,
    questions: Sequence[JudgedQuestion],
    primer: tuple[Demonstration, ...] | None,
    k: int,
    seed: int,
) -> Iterator[tuple[str, list[Shown]]]:
    """Yield each retriever with what it shows before each question; last the random draw.

    Args:
        store: The cases, with their quality.
        questions: The questions.
        primer: The fixed one, if there is one.
        k: How many cases the others show.
        seed: Of the random draw.
    """
    if primer is not None:
        yield PRIMER, [Shown(primer)] * len(questions)
    for name, selector in SELECTORS.items():
        yield name, shown_by(store, selector, questions, k, READING)
    yield RANDOM, shown_at_random(store, questions, k, READING, seed)
