"""A retriever's measures over all questions, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from casewright.finetune.demonstrations.benefit import Logprobs, judged
from casewright.finetune.demonstrations.choice import interval_of
from casewright.finetune.demonstrations.judged import JudgedQuestion
from casewright.finetune.demonstrations.measures import Verdicts
from casewright.finetune.evaluation.intervals import Resamples

#: The column of each measure that the paper's tables have, by the paper's name for it.
PAPER = {
    "DPO": "DPO, triples",
    "MC1": "MC1",
    "MC2": "MC2 (TruthfulQA's MC3)",
    "MC3": "mass (TruthfulQA's MC2)",
}
#: Draws of shuffled labels.
SHUFFLES = 20
#: What retrievers are ranked by: the higher, the better.
RANKED = ("margin", *PAPER.values())


def row_of(
    name: str, found: Sequence[Verdicts], cosine: float | None, questions: int
) -> dict[str, Any]:
    """Return a retriever's measures as a row.

    Args:
        name: The retriever's.
        found: Of each question, maybe several times over; all have wrong answers.
        cosine: Mean cosine of the pairs that it shows.
        questions: How many questions there are.
    """
    margins = np.concatenate([one.margins.ravel() for one in found])
    preferences = np.concatenate([one.preferences.ravel() for one in found])
    per_question = np.array([one.margin for one in found])
    masses = np.array([one.mass for one in found], dtype=np.float64)
    ratios = np.array([one.mass_ratio for one in found], dtype=np.float64)
    # Draws of one question are no questions of their own.
    draws = per_question.reshape(-1, questions).mean(axis=0)
    low, high = interval_of(draws, Resamples(questions))
    return {
        "retriever": name,
        "DPO, triples": float(preferences.mean()),
        "DPO, questions": float(np.mean([one.preference for one in found])),
        "margin": float(per_question.mean()),
        "margin from": low,
        "margin to": high,
        "margin, median of triples": float(np.median(margins)),
        "margin, triples": float(margins.mean()),
        "MC1": _mean(one.mc1 for one in found),
        "MC2 (TruthfulQA's MC3)": _mean(one.share_above for one in found),
        "MC3 as printed: ratio, mean": float(ratios.mean()),
        "ratio, median": float(np.median(ratios)),
        "mass (TruthfulQA's MC2)": float(masses.mean()),
        "cosine of pairs": cosine,
        "questions": questions,
        "triples": len(margins) * questions // len(found),
    }


def shuffled(
    questions: Sequence[JudgedQuestion],
    given: Sequence[Logprobs],
    alone: Sequence[Logprobs],
    seed: int,
) -> list[Verdicts]:
    """Measure with the labels right and wrong shuffled among each question's answers: a control.

    Returns:
        The measures of ``SHUFFLES`` draws, one after the other.
    """
    draw = np.random.default_rng(seed)
    found = []
    for _ in range(SHUFFLES):
        for question, with_cases, without in zip(questions, given, alone, strict=True):
            order = draw.permutation(len(with_cases))
            found.append(
                judged(
                    question,
                    tuple(with_cases[place] for place in order),
                    tuple(without[place] for place in order),
                )
            )
    return found


def ranking(rows: Sequence[dict[str, Any]], measure: str) -> list[str]:
    """Return the retrievers' names, the best first; equal ones in the rows' order."""
    return [row["retriever"] for row in sorted(rows, key=lambda row: -row[measure])]


def _mean(values: Any) -> float:
    return float(np.mean(list(values)))
