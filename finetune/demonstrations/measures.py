"""RAGSys's measures of the effect of demonstrations (Contal and McGoldrick 2024, section 5).

RAGSys and TruthfulQA (Lin et al. 2022) have different names for them:

- ``mc1``: 1 if the best answer is likelier than every wrong one. MC1 in both.
- ``share_above``: the share of right answers that are likelier than every wrong one. RAGSys's MC2,
  TruthfulQA's MC3.
- ``mass_ratio``: Σp(a) / Σp(ā) over right and wrong answers. RAGSys's formula of MC3.
- ``mass``: Σp(a) / (Σp(a) + Σp(ā)), from 0 to 1. RAGSys's tables of MC3 probably have these values;
  TruthfulQA's MC2.
- ``margins``: Δ = log p(a|q,C)/p(a|q) − log p(ā|q,C)/p(ā|q) of each right and each wrong answer,
  above 0 where demonstrations help. RAGSys's DPO is log σ(Δ) with β = 1, always below 0.

All numbers are float64; probabilities are natural logarithms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

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

Floats = NDArray[np.float64]
Logprobs = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class ChosenDemonstrations:
    """A question's demonstrations, the best one last, and the mean cosine of their pairs."""

    demonstrations: tuple[Demonstration, ...] = ()
    cosine: float | None = None

    def asked(self, question: JudgedQuestion) -> Asked:
        """Return the question with these demonstrations."""
        return Asked(question.question, question.answers, self.demonstrations)


def select_by(
    store: CaseStore,
    selector: MarginalSelector,
    questions: Sequence[JudgedQuestion],
    k: int,
    reading: CaseReading,
    *,
    progress: bool | None = None,
) -> list[ChosenDemonstrations]:
    """Return the demonstrations that a selector chooses for each question."""
    rows = []
    label = f"Selecting, λ_d {selector.lambda_d:g}, λ_b {selector.lambda_b:g}"
    with progress_bar(label, len(questions), show=progress) as advance:
        for question in questions:
            hits = selector.select(store, question.question, k, question.where).hits
            chosen = tuple(reading.demonstration(hit.case) for hit in reversed(hits))
            rows.append(ChosenDemonstrations(chosen, _mean_cosine(hits, store, selector)))
            advance(1)
    return rows


def select_at_random(
    store: CaseStore,
    questions: Sequence[JudgedQuestion],
    k: int,
    reading: CaseReading,
    seed: int = 0,
) -> list[ChosenDemonstrations]:
    """Return demonstrations drawn at random for each question, as a control."""
    cases = store.all()
    rng = np.random.default_rng(seed)
    rows = []
    for question in questions:
        order = (cases[index] for index in rng.permutation(len(cases)))
        allowed = islice(filter(question.may_see, order), k)
        rows.append(ChosenDemonstrations(tuple(map(reading.demonstration, allowed))))
    return rows


def _mean_cosine(hits: Sequence[Hit], store: CaseStore, selector: MarginalSelector) -> float | None:
    """Return the mean cosine of the pairs of hits, with the selector's facet weights."""
    if len(hits) < 2:
        return None
    weights = store.schema.weights(selector.weights)
    by_dimension = np.repeat(weights, [facet.dimension for facet in store.schema.facets])
    vectors = np.stack([hit.vector for hit in hits]).astype(np.float64)
    cosines = (vectors * by_dimension) @ vectors.T
    return float(cosines[np.triu_indices(len(hits), 1)].mean())


@dataclass(frozen=True, slots=True)
class AnswerMeasures:
    """The measures of one question; all but ``margins`` are ``None`` without wrong answers.

    Attributes:
        margins: Δ of each right answer with each wrong one, array (right, wrong); without wrong
            ones log p(a|q,C)/p(a|q) of each right one, array (right, 1).
        mc1: 1.0 or 0.0.
        share_above: From 0 to 1.
        mass_ratio: At least 0; infinite if it overflows.
        mass: From 0 to 1.
    """

    margins: Floats
    mc1: float | None
    share_above: float | None
    mass_ratio: float | None
    mass: float | None

    @property
    def preferences(self) -> Floats:
        """log σ of each margin, below 0."""
        return _log_sigmoid(self.margins)

    @property
    def margin(self) -> float:
        """The mean of the margins."""
        return float(self.margins.mean())

    @property
    def preference(self) -> float:
        """The mean of log σ of the margins."""
        return float(self.preferences.mean())


def measure(
    right: Sequence[float],
    wrong: Sequence[float],
    right_alone: Sequence[float],
    wrong_alone: Sequence[float],
) -> AnswerMeasures:
    """Return the measures of one question from its answers' log-probabilities.

    Args:
        right: Of right answers, the best one first, after the question with demonstrations.
        wrong: The same of wrong answers; may be empty.
        right_alone, wrong_alone: The same without demonstrations.

    Raises:
        InputError: There is no right answer, the lengths differ, or a number is not finite.
    """
    r, w, r0, w0 = (
        np.asarray(numbers, dtype=np.float64)
        for numbers in (right, wrong, right_alone, wrong_alone)
    )
    if not len(r) or len(r) != len(r0) or len(w) != len(w0):
        raise InputError(
            f"A question has {len(r)} right and {len(w)} wrong answers with demonstrations, and "
            f"{len(r0)} and {len(w0)} without. Give at least one right answer, and the same "
            "answers both times."
        )
    if not all(np.isfinite(numbers).all() for numbers in (r, w, r0, w0)):
        raise InputError("A log-probability is not finite. Score the answers again.")
    if not len(w):
        return AnswerMeasures((r - r0)[:, None], None, None, None, None)
    log_ratio = np.logaddexp.reduce(r) - np.logaddexp.reduce(w)
    with np.errstate(over="ignore"):
        ratio = float(np.exp(log_ratio))
    return AnswerMeasures(
        margins=(r - r0)[:, None] - (w - w0)[None, :],
        mc1=float(r[0] > w.max()),
        share_above=float((r > w.max()).mean()),
        mass_ratio=ratio,
        # The mass is σ of the difference of the logarithms, which cannot overflow.
        mass=float(np.exp(_log_sigmoid(np.asarray(log_ratio)))),
    )


def _log_sigmoid(numbers: Floats) -> Floats:
    from scipy.special import log_expit

    logarithms: Floats = np.asarray(log_expit(np.asarray(numbers, dtype=np.float64)))
    return logarithms


def score_all(
    scorer: AnswerScorer, questions: Sequence[Asked], *, progress: bool | None = None
) -> list[Logprobs]:
    """Return the log-probabilities of each question's answers; equal questions are scored once."""
    indices: dict[Asked, int] = {}
    for question in questions:
        indices.setdefault(question, len(indices))
    logprobs: list[Logprobs] = [()] * len(indices)
    with progress_bar("Scoring questions", len(indices), show=progress) as advance:
        for index, likelihoods in scorer.score(list(indices)):
            logprobs[index] = tuple(likelihood.logprob for likelihood in likelihoods)
            advance(1)
    return [logprobs[indices[question]] for question in questions]


def prompts_of(
    questions: Sequence[JudgedQuestion], selections: Sequence[Sequence[ChosenDemonstrations]]
) -> list[Asked]:
    """Return all questions without demonstrations, then with those of each row of selections."""
    rows = [[ChosenDemonstrations()] * len(questions), *selections]
    return [item.asked(q) for row in rows for item, q in zip(row, questions, strict=True)]


def measure_all(
    scorer: AnswerScorer,
    questions: Sequence[JudgedQuestion],
    selections: Sequence[Sequence[ChosenDemonstrations]],
    *,
    progress: bool | None = None,
) -> list[list[AnswerMeasures]]:
    """Return the measures of each question, for each row of selections."""
    logprobs = score_all(scorer, prompts_of(questions, selections), progress=progress)
    count = len(questions)
    alone = logprobs[:count]
    return [
        [
            measure_question(*row)
            for row in zip(questions, logprobs[start : start + count], alone, strict=True)
        ]
        for start in range(count, len(logprobs), count)
    ]


def measure_question(
    question: JudgedQuestion, logprobs: Logprobs, alone: Logprobs
) -> AnswerMeasures:
    """Return a question's measures from its answers' log-probabilities, right answers first."""
    split = len(question.right)
    return measure(logprobs[:split], logprobs[split:], alone[:split], alone[split:])
