"""How much one search finds: the baseline that a loop of searches has to be better than."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from casewright.bench.feedback.sets import FeedbackQuestion
from casewright.stores import CaseStore

#: Results that are looked at.
KS = (5, 10, 20, 30, 50)
#: Weights are tried in steps of one over this.
STEPS = 10

Ranking = Sequence[str]


@dataclass(frozen=True, slots=True)
class Found:
    """What rankings hold of what is relevant, at every k of ``KS``; means over questions.

    Attributes:
        recall: Share of the relevant cases among the first k.
        whole: Share of questions with all relevant cases among the first k.
    """

    recall: tuple[float, ...]
    whole: tuple[float, ...]


def recall(found: Ranking, relevant: frozenset[str]) -> float:
    """Return the share of the relevant cases that was found."""
    return len(relevant.intersection(found)) / len(relevant)


def search_each(
    store: CaseStore,
    questions: Sequence[FeedbackQuestion],
    weights: Mapping[str, float] | None = None,
    k: int = KS[-1],
) -> list[list[str]]:
    """Return the ids that one search a question finds, best first.

    Args:
        store: What is searched.
        questions: What is asked.
        weights: Of the facets; ``None`` takes the schema's own.
        k: Results a question.
    """
    searches = (store.search(question.text, k, weights=weights) for question in questions)
    return [[hit.case.id for hit in hits] for hits in searches]


def found_at(rankings: Sequence[Ranking], questions: Sequence[FeedbackQuestion]) -> Found:
    """Return what rankings hold at every k.

    Raises:
        ValueError: There is no question, or another number of rankings.
    """
    if not questions:
        raise ValueError("nothing was asked, so that nothing can be said of what was found")
    shares = [
        [
            recall(ranking[:k], question.relevant)
            for ranking, question in zip(rankings, questions, strict=True)
        ]
        for k in KS
    ]
    return Found(
        tuple(sum(column) / len(column) for column in shares),
        tuple(sum(share == 1 for share in column) / len(column) for column in shares),
    )


def weightings() -> list[dict[str, float]]:
    """Return the weights of ``text`` and ``title`` that are tried, in steps of 0.1."""
    return [{"text": text / STEPS, "title": (STEPS - text) / STEPS} for text in range(STEPS + 1)]


def best_weights(store: CaseStore, questions: Sequence[FeedbackQuestion]) -> dict[str, float]:
    """Return the facets' weights of the best mean recall over all k; of equals the first.

    Args:
        store: What is searched, with the facets ``text`` and ``title``.
        questions: Of the training half: none that the bench measures by.

    Raises:
        ValueError: There is no question.
    """

    def mean_recall(weights: Mapping[str, float]) -> float:
        return sum(found_at(search_each(store, questions, weights), questions).recall)

    return max(weightings(), key=mean_recall)
