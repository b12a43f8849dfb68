"""RAGSys's measures of what demonstrations do to a model (Contal and McGoldrick 2024, section 5).

Where its names and those of TruthfulQA (Lin et al. 2022) differ, both stand beside each other:

- ``mc1``: whether the best answer is likelier than every wrong one; TruthfulQA's MC1 as well.
- ``share_above``: the share of right answers that are likelier than every wrong one. The paper's
  MC2 is TruthfulQA's own MC3.
- ``mass_ratio``: Σp(a) / Σp(ā) over right and wrong answers, as the paper prints its MC3; without
  bound.
- ``mass``: Σp(a) / (Σp(a) + Σp(ā)), from 0 to 1. It is what the paper's tables of MC3 look like,
  and TruthfulQA's own MC2.
- ``margins``: Δ = log p(a|q,C)/p(a|q) − log p(ā|q,C)/p(ā|q) of each right and each wrong answer:
  above 0 where demonstrations help. The paper's DPO is log σ(Δ) with β = 1, which never is.

All numbers have double precision; probabilities are kept as natural logarithms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casewright.errors import InputError
from casewright.finetune.demonstrations.judged import (
    AnswerScorer,
    Asked,
    CaseReading,
    Demonstration,
    JudgedQuestion,
)
from casewright.stores import CaseStore, Hit, MarginalSelector
from casewright.stores.progress import progress_bar


@dataclass(frozen=True, slots=True)
class Shown:
    """The demonstrations before a question.

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
    results = []
    label = f"Selecting, λ_d {selector.lambda_d:g}, λ_b {selector.lambda_b:g}"
    with progress_bar(label, len(questions), show=progress) as advance:
        for question in questions:
            hits = selector.select(store, question.question, k, question.where).hits
            chosen = tuple(reading.demonstration(hit.case) for hit in reversed(hits))
            results.append(Shown(chosen, mean_cosine(hits, store, selector)))
            advance(1)
    return results


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
    results = []
    for question in questions:
        chosen: list[Demonstration] = []
        # Most cases may be shown: to look through a permutation ends soon.
        for index in draw.permutation(len(cases)):
            if len(chosen) == k:
                break
            if question.may_see(cases[index]):
                chosen.append(reading.demonstration(cases[index]))
        results.append(Shown(tuple(chosen)))
    return results


def mean_cosine(hits: Sequence[Hit], store: CaseStore, selector: MarginalSelector) -> float | None:
    """Return the mean cosine of the pairs of hits, as the selection's redundancy weighs it."""
    if len(hits) < 2:
        return None
    shares = store.schema.weights(selector.weights)
    spread = np.repeat(shares, [facet.dimension for facet in store.schema.facets])
    vectors = np.stack([hit.vector for hit in hits]).astype(np.float64)
    likeness = (vectors * spread) @ vectors.T
    return float(likeness[np.triu_indices(len(hits), 1)].mean())


Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The measures of one question.

    Attributes:
        margins: Δ of each right answer with each wrong one, array (right, wrong); where there are
            no wrong ones, log p(a|q,C)/p(a|q) of each right one, array (right, 1).
        mc1: 1.0 or 0.0; ``None`` without wrong answers, as the three that follow.
        share_above: From 0 to 1.
        mass_ratio: At least 0; infinite where it is larger than a float can be.
        mass: From 0 to 1.
    """

    margins: Floats
    mc1: float | None
    share_above: float | None
    mass_ratio: float | None
    mass: float | None

    @property
    def preferences(self) -> Floats:
        """Return log σ of each margin, below 0."""
        return log_sigmoid(self.margins)

    @property
    def margin(self) -> float:
        """Return the mean of the margins."""
        return float(self.margins.mean())

    @property
    def preference(self) -> float:
        """Return the mean of log σ of the margins."""
        return float(self.preferences.mean())


def measure(
    right: Sequence[float],
    wrong: Sequence[float],
    right_alone: Sequence[float],
    wrong_alone: Sequence[float],
    best: int = 0,
) -> Verdicts:
    """Return the measures of one question.

    Args:
        right: Log-probability of each right answer, given the question and its demonstrations.
        wrong: The same of each wrong answer; there may be none.
        right_alone: Of each right answer, given the question alone.
        best: Which of the right answers is the best one.

    Raises:
        InputError: There is no right answer, the lengths differ, or a number is no finite one.
    """
    r, w, r0, w0 = (
        np.asarray(numbers, dtype=np.float64)
        for numbers in (right, wrong, right_alone, wrong_alone)
    )
    if not len(r) or len(r) != len(r0) or len(w) != len(w0) or not 0 <= best < len(r):
        raise InputError(
            f"A question has {len(r)} right and {len(w)} wrong answers with demonstrations, and "
            f"{len(r0)} and {len(w0)} without; the best is number {best}. Give at least one right "
            "answer, and the same answers both times."
        )
    if not all(np.isfinite(numbers).all() for numbers in (r, w, r0, w0)):
        raise InputError("A log-probability is no finite number. Score the answers again.")
    if not len(w):
        return Verdicts((r - r0)[:, None], None, None, None, None)
    above = w.max()
    apart = np.logaddexp.reduce(r) - np.logaddexp.reduce(w)
    with np.errstate(over="ignore"):
        ratio = float(np.exp(apart))
    return Verdicts(
        margins=(r - r0)[:, None] - (w - w0)[None, :],
        mc1=float(r[best] > above),
        share_above=float((r > above).mean()),
        mass_ratio=ratio,
        # σ of the difference of the logarithms is the share, and overflows nowhere.
        mass=float(np.exp(log_sigmoid(np.asarray(apart)))),
    )


def log_sigmoid(numbers: Floats) -> Floats:
    """Return log σ(x), exact for any size of x."""
    from scipy.special import log_expit

    result: Floats = np.asarray(log_expit(np.asarray(numbers, dtype=np.float64)))
    return result


Logprobs = tuple[float, ...]


def score_all(
    scorer: AnswerScorer, asked: Sequence[Asked], *, progress: bool | None = None
) -> list[Logprobs]:
    """Return the log-probabilities of each question's answers; what is asked twice, once."""
    first: dict[Asked, int] = {}
    for question in asked:
        first.setdefault(question, len(first))
    results: list[Logprobs] = [()] * len(first)
    with progress_bar("Scoring questions", len(first), show=progress) as advance:
        for index, likelihoods in scorer.score(list(first)):
            results[index] = tuple(likelihood.logprob for likelihood in likelihoods)
            advance(1)
    return [results[first[question]] for question in asked]


def verdicts(
    scorer: AnswerScorer,
    questions: Sequence[JudgedQuestion],
    shown: Sequence[Sequence[Shown]],
    *,
    progress: bool | None = None,
) -> list[list[Verdicts]]:
    """Measure several selections at once.

    Args:
        shown: For each selection what it shows before each question.
        progress: Whether a bar is shown; see ``progress_bar``.

    Returns:
        For each selection the measures of each question, against the question without
        demonstrations.
    """
    rows = [[Shown()] * len(questions), *shown]
    asked = [
        item.asked(question) for row in rows for item, question in zip(row, questions, strict=True)
    ]
    result = score_all(scorer, asked, progress=progress)
    count = len(questions)
    alone = result[:count]
    return [
        [
            judged(question, given, without)
            for question, given, without in zip(
                questions, result[start : start + count], alone, strict=True
            )
        ]
        for start in range(count, len(result), count)
    ]


def judged(question: JudgedQuestion, given: Logprobs, alone: Logprobs) -> Verdicts:
    """Return a question's measures from its answers' log-probabilities, the right ones first."""
    split = len(question.right)
    return measure(given[:split], given[split:], alone[:split], alone[split:])
