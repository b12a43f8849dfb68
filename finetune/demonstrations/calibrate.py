"""Calibration finds the shares of relevance, diversity and quality that help a model most.

The benefit of a setting is the mean of a measure over the questions, as in RAGSys (section 5.3,
Figure 1). Each setting selects with ``MarginalSelector``, as a planner does.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from casewright.errors import InputError
from casewright.finetune.demonstrations import measures
from casewright.finetune.demonstrations.judged import AnswerPrompt, AnswerScorer, CaseReader
from casewright.finetune.demonstrations.measures import AnswerMeasures, Floats, Questions
from casewright.finetune.demonstrations.recorded import RecordedScorer
from casewright.finetune.evaluation.intervals import Resamples, percentile_interval
from casewright.stores import CaseStore, MarginalSelector
from casewright.stores.select import check_bias, check_share

#: A setting: λ_d and λ_b, which ``SettingResult`` explains.
Setting = tuple[float, float]
#: λ_d = λ_b = 1, which selects the nearest cases.
NEAREST: Setting = (1.0, 1.0)
#: Default values of λ_d, and of λ_b if quality can be measured.
LAMBDAS_D = tuple(round(step / 10, 1) for step in range(11))
LAMBDAS_B = (0.9, 0.95, 1.0)
#: Number of folds of the questions; each fold is held out once.
FOLD_COUNT = 5
#: Number of prompts that are scored to estimate the time for all prompts.
_SAMPLE_SIZE = 8

#: The measures that a calibration can optimise, and their attributes of ``AnswerMeasures``.
MEASURES = {"margin": "margin", "dpo": "preference", "mass": "mass", "mc1": "mc1"}


@dataclass(frozen=True, slots=True)
class SettingChoice:
    """The best setting of a sweep.

    Attributes:
        benefit: The setting's mean benefit; optimistic, because the choice maximised it.
        gain: The benefit minus that of λ_d = λ_b = 1, and the 95 % interval of this difference.
        lambda_d_interval: Range of the best λ_d in 95 % of the questions' bootstrap samples.
        as_good: The settings that are not significantly worse, by a paired 95 % interval.
    """

    lambda_d: float
    lambda_b: float
    benefit: float
    gain: tuple[float, float, float]
    lambda_d_interval: tuple[float, float]
    lambda_b_interval: tuple[float, float]
    as_good: Sequence[Setting]


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of scores that are not recorded; ``seconds`` is ``None`` without an estimate."""

    questions: int  # the number of prompts
    answers: int
    tokens: int
    seconds: float | None


@dataclass(frozen=True, slots=True)
class SettingResult:
    """One setting of a sweep.

    Attributes:
        lambda_d: Share of the relevance; the rest is the share of the diversity.
        lambda_b: Share of the similarity in the relevance; the rest is the share of the quality.
        interval: 95 % interval of the benefit.
        dpo: Mean of ``AnswerMeasures.preference`` over the questions.
        cosine: Mean cosine of the pairs of demonstrations in a prompt.
    """

    lambda_d: float
    lambda_b: float
    benefit: float
    interval: tuple[float, float]
    dpo: float
    cosine: float | None


@dataclass(frozen=True, slots=True)
class Calibration:
    """The result of a sweep.

    ``held_out`` has three benefits with their 95 % intervals: ``chosen`` (each fold has the setting
    that is best on the other folds), ``nearest`` (λ_d = λ_b = 1) and ``random`` (random cases).
    """

    model: str
    measure: str
    questions: int
    k: int
    rows: Sequence[SettingResult]
    choice: SettingChoice
    held_out: dict[str, tuple[float, float, float]]
    cost: Cost

    @property
    def selector(self) -> MarginalSelector:
        """The selector with the best setting, for a planner's argument ``selection``."""
        return MarginalSelector(self.choice.lambda_d, self.choice.lambda_b)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON-plain form."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Sweep:
    """The settings that a calibration tries; ``InputError`` if one is out of range.

    Attributes:
        k: Number of demonstrations in a prompt.
        lambdas_d: Values of λ_d, from 0 to 1.
        lambdas_b: Values of λ_b. If λ_b is below 1, a case with a high quality (see
            ``measure_quality``) is preferred; if λ_b is above 1, one with a low quality.
        measure: The measure to optimise: a key of ``MEASURES``.
        limit: Maximum number of questions, which are drawn at random.
    """

    k: int = 6
    lambdas_d: Sequence[float] = LAMBDAS_D
    lambdas_b: Sequence[float] = (1.0,)
    measure: str = "margin"
    limit: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.measure not in MEASURES:
            raise InputError(
                f"There is no measure {self.measure!r}. Give one of {', '.join(MEASURES)}."
            )
        if self.k < 1 or not self.lambdas_d or not self.lambdas_b:
            raise InputError("Give k of at least 1, and at least one value of λ_d and of λ_b.")
        check_share(**{f"λ_d {share}": share for share in self.lambdas_d})
        check_bias(**{f"λ_b {share}": share for share in self.lambdas_b})

    @property
    def settings(self) -> list[Setting]:
        """All combinations of λ_d and λ_b, and (1, 1)."""
        return sorted(set(itertools.product(self.lambdas_d, self.lambdas_b)) | {NEAREST})


@dataclass(frozen=True, slots=True)
class PreparedCalibration:
    """A calibration after the selection of demonstrations, before the scoring.

    ``selections`` has a row for each setting, and a last row with random demonstrations.
    """

    sweep: Sweep
    questions: Questions
    selections: Sequence[Sequence[measures.ChosenDemonstrations]]
    cost: Cost


def calibrate(
    store: CaseStore,
    scorer: AnswerScorer,
    questions: Questions | None = None,
    sweep: Sweep | None = None,
    *,
    reading: CaseReader | None = None,
) -> Calibration:
    """Find the selection of a store's cases that helps a model most.

    Args:
        scorer: The model; a ``RecordedScorer`` resumes an interrupted run.
        questions: By default the store's cases. A case is not shown with questions of its group.
        reading: Reads cases as demonstrations and questions, by default ``CaseReader.of(store)``.

    Raises:
        InputError: A case has no question, answer or group, there are fewer than two questions, or
            questions lack the wrong answers that the measure needs.
    """
    return run(prepare(store, scorer, questions, sweep, case_reader=reading), scorer)


def prepare(
    store: CaseStore,
    scorer: AnswerScorer,
    questions: Questions | None = None,
    sweep: Sweep | None = None,
    *,
    case_reader: CaseReader | None = None,
) -> PreparedCalibration:
    """Select demonstrations for every setting, and estimate the cost; see ``calibrate``."""
    sweep, case_reader = sweep or Sweep(), case_reader or CaseReader.of(store)
    sample = list(questions) if questions is not None else case_reader.questions(store.all())
    if sweep.limit is not None and sweep.limit < len(sample):
        sample = random.Random(sweep.seed).sample(sample, sweep.limit)
    _check_questions(sample, sweep.measure)
    selections = [
        measures.select_by(store, MarginalSelector(*setting), sample, sweep.k, case_reader)
        for setting in sweep.settings
    ]
    selections.append(measures.select_at_random(store, sample, sweep.k, case_reader, sweep.seed))
    prompts = dict.fromkeys(measures.prompts_of(sample, selections))
    cost = _estimate_cost(scorer, list(prompts))
    return PreparedCalibration(sweep, sample, selections, cost)


def run(prepared: PreparedCalibration, scorer: AnswerScorer) -> Calibration:
    """Score the prepared prompts, and choose the best setting."""
    sweep, questions = prepared.sweep, prepared.questions
    count = len(questions)
    logprobs = measures.score_all(scorer, measures.prompts_of(questions, prepared.selections))
    # The first row, ``alone``, is of the prompts without demonstrations.
    alone, *rows = (logprobs[start : start + count] for start in range(0, len(logprobs), count))
    measures_by_row = [[*map(measures.measure_question, questions, row, alone)] for row in rows]
    value_of = attrgetter(MEASURES[sweep.measure])
    benefit = np.array([[*map(value_of, row)] for row in measures_by_row])
    # Questions of one group are resampled and held out together.
    group_ids: dict[Any, int] = {}
    groups = [group_ids.setdefault(q.group or q.question, len(group_ids)) for q in questions]
    resamples = Resamples(count, groups=groups, seed=sweep.seed)
    return Calibration(
        model=scorer.name,
        measure=sweep.measure,
        questions=count,
        k=sweep.k,
        rows=_setting_results(prepared, measures_by_row, benefit, resamples),
        choice=_choose_setting(sweep.settings, benefit[:-1], resamples),
        held_out=_held_out_benefits(sweep.settings, benefit, resamples, sweep.seed),
        cost=prepared.cost,
    )


def _check_questions(questions: Questions, measure: str) -> None:
    if len(questions) < 2:
        raise InputError(
            f"A calibration has {len(questions)} questions. Give at least two; some hundred are "
            "needed to tell settings apart."
        )
    have_wrong = {bool(question.wrong) for question in questions}
    if len(have_wrong) > 1:
        raise InputError(
            "Some questions have wrong answers and some have none, so their margins cannot be "
            "compared. Give wrong answers for all of them, or for none."
        )
    if measure in ("mass", "mc1") and False in have_wrong:
        raise InputError(
            f"The measure {measure!r} needs wrong answers, and the questions have none. Take "
            "margin or dpo, or give wrong answers."
        )


def _estimate_cost(scorer: AnswerScorer, prompts: Sequence[AnswerPrompt]) -> Cost:
    """Return the cost of scoring; the time is estimated from a sample of the prompts."""
    unrecorded = scorer.missing(prompts) if isinstance(scorer, RecordedScorer) else prompts
    tokens = scorer.tokens(unrecorded)
    seconds = None
    # Without a record, the sample would be scored twice.
    if isinstance(scorer, RecordedScorer) and unrecorded:
        # The sample is spread evenly, since prompts of different settings have different lengths.
        sample = unrecorded[:: max(1, len(unrecorded) // _SAMPLE_SIZE)][:_SAMPLE_SIZE]
        factor = tokens / max(1, scorer.tokens(sample))
        started = time.perf_counter()
        measures.score_all(scorer, sample)
        seconds = (time.perf_counter() - started) * factor
    return Cost(len(unrecorded), sum(len(prompt.answers) for prompt in unrecorded), tokens, seconds)


def _setting_results(
    prepared: PreparedCalibration,
    measures_by_row: Sequence[Sequence[AnswerMeasures]],
    benefit: Floats,
    resamples: Resamples,
) -> list[SettingResult]:
    results = []
    # ``zip`` omits the last row, whose random cases have no setting.
    rows = zip(prepared.sweep.settings, benefit, measures_by_row, prepared.selections, strict=False)
    for setting, benefits, answer_measures, selections in rows:
        cosines = [chosen.cosine for chosen in selections if chosen.cosine is not None]
        dpo = float(np.mean([m.preference for m in answer_measures]))
        interval = interval_of(benefits, resamples)
        cosine = float(np.mean(cosines)) if cosines else None
        results.append(SettingResult(*setting, float(benefits.mean()), interval, dpo, cosine))
    return results


def _best_index(settings: Sequence[Setting], means: Floats) -> int:
    """Return the index of the setting with the highest mean, then highest λ_d, then highest λ_b."""
    return max(range(len(settings)), key=lambda s: (round(float(means[s]), 12), *settings[s]))


def _choose_setting(
    settings: Sequence[Setting], benefit: Floats, resamples: Resamples
) -> SettingChoice:
    """Return the setting with the highest mean benefit; ``benefit`` is (settings, questions)."""
    means = _resampled_means(benefit, resamples)
    best = _best_index(settings, benefit.mean(axis=1))
    nearest = settings.index(NEAREST)
    bootstrap_best = [settings[_best_index(settings, row)] for row in means]
    gain = means[:, best] - means[:, nearest]
    as_good = [
        setting
        for number, setting in enumerate(settings)
        if percentile_interval(means[:, best] - means[:, number])[0] <= 0
    ]
    return SettingChoice(
        *settings[best],
        benefit=float(benefit[best].mean()),
        gain=(float((benefit[best] - benefit[nearest]).mean()), *percentile_interval(gain)),
        lambda_d_interval=percentile_interval(np.array([d for d, _ in bootstrap_best])),
        lambda_b_interval=percentile_interval(np.array([b for _, b in bootstrap_best])),
        as_good=as_good,
    )


def _held_out_benefits(
    settings: Sequence[Setting], benefit: Floats, resamples: Resamples, seed: int
) -> dict[str, tuple[float, float, float]]:
    """Return ``Calibration.held_out``; ``benefit`` is an array (settings + random, questions)."""
    question_count = benefit.shape[1]
    groups = np.asarray(resamples.groups)
    fold_of = np.random.default_rng(seed).permutation(int(groups.max()) + 1)[groups] % FOLD_COUNT
    chosen = np.empty(question_count)
    for fold in set(fold_of.tolist()):
        held_out = fold_of == fold
        # If all questions are in one fold, that fold is not held out.
        others = benefit[:-1, ~held_out] if (~held_out).any() else benefit[:-1]
        chosen[held_out] = benefit[_best_index(settings, others.mean(axis=1)), held_out]
    rows = {"chosen": chosen, "nearest": benefit[settings.index(NEAREST)], "random": benefit[-1]}
    return {name: (float(row.mean()), *interval_of(row, resamples)) for name, row in rows.items()}


def interval_of(values: Floats, resamples: Resamples) -> tuple[float, float]:
    """Return the 95 % interval of the mean of the questions' values."""
    return percentile_interval(_resampled_means(values[None, :], resamples)[:, 0])


def _resampled_means(benefit: Floats, resamples: Resamples) -> Floats:
    """Return each setting's mean in each resample, array (resamples, settings)."""
    means = [w @ benefit.T / w.sum(axis=1, keepdims=True) for w in resamples.weights()]
    return np.concatenate(means)


def draw_calibration(axes: Any, calibration: Calibration) -> None:
    """Draw the benefit of each setting over the mean cosine of its demonstrations."""
    for lambda_b in sorted({row.lambda_b for row in calibration.rows}):
        rows = [r for r in calibration.rows if r.lambda_b == lambda_b and r.cosine is not None]
        benefits = [row.benefit for row in rows]
        errors = np.abs(np.array([row.interval for row in rows]).T - benefits)
        style = {"marker": "o", "capsize": 2, "linewidth": 1, "label": f"λ_b = {lambda_b:g}"}
        axes.errorbar([row.cosine for row in rows], benefits, yerr=errors, **style)
        style = {"textcoords": "offset points", "xytext": (4, 4), "fontsize": 7}
        for row in rows:
            axes.annotate(f"{row.lambda_d:g}", (row.cosine, row.benefit), **style)
    random_benefit = calibration.held_out["random"][0]
    axes.axhline(random_benefit, color="grey", linestyle=":", label="random cases")
    axes.set_xlabel("mean cosine of the pairs shown (left: more diverse)")
    axes.set_ylabel(f"{calibration.measure}, mean of {calibration.questions} questions")
    axes.set_title(f"{calibration.model}: each point a λ_d, {calibration.k} demonstrations")
    axes.legend()
