"""RAGSys's measures of the effect of demonstrations (Contal and McGoldrick 2024, section 5).

RAGSys and TruthfulQA (Lin et al. 2022) have different names for the measures. In the formulas, a is
a right answer, ā a wrong one, q the question, and C the demonstrations:

- ``mc1``: 1 if the best answer is likelier than every wrong one. MC1 in both papers.
- ``share_above``: the share of right answers that are likelier than every wrong one. RAGSys's MC2,
  TruthfulQA's MC3.
- ``mass_ratio``: Σp(a) / Σp(ā) over right and wrong answers.
- ``mass``: Σp(a) / (Σp(a) + Σp(ā)), from 0 to 1. TruthfulQA's MC2. RAGSys's formula of MC3 is
  ``mass_ratio``, but its tables of MC3 probably show this measure.
- ``margins``: Δ = log[p(a|q,C)/p(a|q)] − log[p(ā|q,C)/p(ā|q)] of each right and each wrong answer;
  above 0 if the demonstrations help.
- ``preferences``: log σ(Δ), which is below 0. RAGSys's DPO with β = 1.

All numbers are float64; log-probabilities are natural logarithms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from casewright.errors import InputError
from casewright.finetune.demonstrations.judged import (
    AnswerPrompt,
    AnswerScorer,
    CaseReader,
    Demonstration,
    JudgedQuestion,
)
from casewright.stores import CaseStore, Hit, MarginalSelector
from casewright.stores.progress import progress_bar

Floats = NDArray[np.float64]
Logprobs = tuple[float, ...]
Questions = Sequence[JudgedQuestion]


@dataclass(frozen=True, slots=True)
class ChosenDemonstrations:
    """A question's demonstrations, the best last, and the mean cosine of all pairs of them."""

    demonstrations: tuple[Demonstration, ...] = ()
    cosine: float | None = None

    def prompt(self, question: JudgedQuestion) -> AnswerPrompt:
        """Return the question with these demonstrations."""
        return AnswerPrompt(question.question, question.answers, self.demonstrations)


def select_by(
    store: CaseStore,
    selector: MarginalSelector,
    questions: Questions,
    k: int,
    case_reader: CaseReader,
) -> list[ChosenDemonstrations]:
    """Return the ``k`` demonstrations that a selector chooses for each question."""
    selection = []
    label = f"Selecting, λ_d {selector.lambda_d:g}, λ_b {selector.lambda_b:g}"
    with progress_bar(label, len(questions)) as advance:
        for question in questions:
            hits = selector.select(store, question.question, k, question.where).hits
            # The best one is last, next to the question.
            shown = tuple(case_reader.demonstration(hit.case) for hit in reversed(hits))
            selection.append(ChosenDemonstrations(shown, _mean_cosine(hits, store, selector)))
            advance(1)
    return selection


def select_at_random(
    store: CaseStore, questions: Questions, k: int, case_reader: CaseReader, seed: int = 0
) -> list[ChosenDemonstrations]:
    """Return ``k`` random demonstrations for each question, as a control."""
    cases = store.all()
    rng = np.random.default_rng(seed)
    selection = []
    for question in questions:
        shuffled_cases = (cases[index] for index in rng.permutation(len(cases)))
        allowed = islice(filter(question.may_see, shuffled_cases), k)
        selection.append(ChosenDemonstrations(tuple(map(case_reader.demonstration, allowed))))
    return selection


def _mean_cosine(hits: Sequence[Hit], store: CaseStore, selector: MarginalSelector) -> float | None:
    """Return the mean cosine of all pairs of hits; facets have the selector's weights."""
    if len(hits) < 2:
        return None
    weights = store.schema.weights(selector.weights)
    dimension_weights = np.repeat(weights, [facet.dimension for facet in store.schema.facets])
    vectors = np.stack([hit.vector for hit in hits]).astype(np.float64)
    cosines = (vectors * dimension_weights) @ vectors.T
    return float(cosines[np.triu_indices(len(hits), 1)].mean())


@dataclass(frozen=True, slots=True)
class AnswerMeasures:
    """The measures of one question; all but ``margins`` are ``None`` without wrong answers.

    Attributes:
        margins: Δ of each right answer and each wrong one, array (right, wrong). Without wrong
            answers, log[p(a|q,C)/p(a|q)] of each right one, array (right, 1).
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
        """An array with log σ(Δ) for each margin Δ."""
        logarithms: Floats = -np.logaddexp(0.0, -self.margins)
        return logarithms

    @property
    def margin(self) -> float:
        """The mean of the margins."""
        return float(self.margins.mean())

    @property
    def preference(self) -> float:
        """The mean of the preferences."""
        return float(self.preferences.mean())


def measure(
    right: Sequence[float],
    wrong: Sequence[float],
    right_alone: Sequence[float],
    wrong_alone: Sequence[float],
) -> AnswerMeasures:
    """Return the measures of one question from its answers' log-probabilities.

    Args:
        right: With demonstrations, log-probabilities of the right answers, the best answer first.
        wrong: With demonstrations, log-probabilities of the wrong answers; may be empty.
        right_alone: Without demonstrations, log-probabilities of the same right answers.
        wrong_alone: Without demonstrations, log-probabilities of the same wrong answers.

    Raises:
        InputError: There is no right answer, the lengths differ, or a number is not finite.
    """
    arrays = [np.asarray(values, np.float64) for values in (right, wrong, right_alone, wrong_alone)]
    rights, wrongs, rights_alone, wrongs_alone = arrays
    if not len(rights) or len(rights) != len(rights_alone) or len(wrongs) != len(wrongs_alone):
        raise InputError(
            f"A question has {len(rights)} right and {len(wrongs)} wrong answers with "
            f"demonstrations, and {len(rights_alone)} and {len(wrongs_alone)} without. Give at "
            "least one right answer, and the same answers both times."
        )
    if not all(np.isfinite(logprobs).all() for logprobs in arrays):
        raise InputError("A log-probability is not finite. Score the answers again.")
    if not len(wrongs):
        return AnswerMeasures((rights - rights_alone)[:, None], None, None, None, None)
    log_ratio = np.logaddexp.reduce(rights) - np.logaddexp.reduce(wrongs)
    with np.errstate(over="ignore"):
        ratio = float(np.exp(log_ratio))
    return AnswerMeasures(
        margins=(rights - rights_alone)[:, None] - (wrongs - wrongs_alone)[None, :],
        mc1=float(rights[0] > wrongs.max()),
        share_above=float((rights > wrongs.max()).mean()),
        mass_ratio=ratio,
        # The mass is σ(log_ratio); this form cannot overflow.
        mass=float(np.exp(-np.logaddexp(0.0, -log_ratio))),
    )


def score_all(scorer: AnswerScorer, prompts: Sequence[AnswerPrompt]) -> list[Logprobs]:
    """Return the log-probabilities of each prompt's answers; equal prompts are scored once."""
    unique = list(dict.fromkeys(prompts))
    logprobs: dict[AnswerPrompt, Logprobs] = {}
    with progress_bar("Scoring questions", len(unique)) as advance:
        for index, likelihoods in scorer.score(unique):
            logprobs[unique[index]] = tuple(likelihood.logprob for likelihood in likelihoods)
            advance(1)
    return [logprobs[prompt] for prompt in prompts]


def prompts_of(
    questions: Questions, selections: Sequence[Sequence[ChosenDemonstrations]]
) -> list[AnswerPrompt]:
    """Return each question's prompt without demonstrations, then the prompts of each selection."""
    rows = [[ChosenDemonstrations()] * len(questions), *selections]
    return [chosen.prompt(q) for row in rows for chosen, q in zip(row, questions, strict=True)]


def measure_question(
    question: JudgedQuestion, logprobs: Logprobs, alone: Logprobs
) -> AnswerMeasures:
    """Return a question's measures from the log-probabilities of ``question.answers``.

    ``alone`` are the log-probabilities of the same answers without demonstrations.
    """
    count = len(question.right)
    return measure(logprobs[:count], logprobs[count:], alone[:count], alone[count:])
