"""Calibration: which shares of relevance, diversity and quality help a model most.

RAGSys, section 5.3 and Figure 1: the benefit of the selected demonstrations over λ_d, beside how
alike they are. Every setting selects from the store by the same object that a planner is given.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from casewright.errors import InputError
from casewright.finetune.demonstrations.judged import AnswerScorer, CaseReading, JudgedQuestion
from casewright.finetune.demonstrations.measures import (
    Floats,
    Shown,
    Verdicts,
    score_all,
    shown_at_random,
    shown_by,
    verdicts,
)
from casewright.finetune.demonstrations.recorded import RecordedScorer
from casewright.finetune.evaluation.intervals import Resamples, percentile_interval
from casewright.stores import CaseStore, MarginalSelector
from casewright.stores.select import check_bias, check_share

#: Parts of the questions, each of which is left out of a choice once.
FOLDS = 5


@dataclass(frozen=True, slots=True)
class Choice:
    """The best setting of a sweep.

    Attributes:
        benefit: Its mean benefit. It was chosen by this number, which flatters it.
        gain: How much more than λ_d = λ_b = 1 it has, and the 95 % interval.
        lambda_d_interval: Between which values of λ_d 95 % of resamples of the questions choose.
        as_good: The settings whose benefit is not surely less, by a paired 95 % interval.
    """

    lambda_d: float
    lambda_b: float
    benefit: float
    gain: tuple[float, float, float]
    lambda_d_interval: tuple[float, float]
    lambda_b_interval: tuple[float, float]
    as_good: Sequence[tuple[float, float]]


def best_of(settings: Sequence[tuple[float, float]], means: Floats) -> int:
    """Return which setting has the highest mean; of equal ones the nearest to plain similarity."""
    return max(range(len(settings)), key=lambda s: (round(float(means[s]), 12), *settings[s]))


def choose(
    settings: Sequence[tuple[float, float]], benefit: Floats, resamples: Resamples
) -> Choice:
    """Choose the setting (λ_d, λ_b) with the highest mean benefit, array (settings, questions)."""
    means = _means(benefit, resamples)
    best = best_of(settings, benefit.mean(axis=1))
    plain = settings.index((1.0, 1.0))
    drawn = [settings[best_of(settings, row)] for row in means]
    gain = means[:, best] - means[:, plain]
    as_good = [
        setting
        for number, setting in enumerate(settings)
        if percentile_interval(means[:, best] - means[:, number])[0] <= 0
    ]
    return Choice(
        *settings[best],
        benefit=float(benefit[best].mean()),
        gain=(float((benefit[best] - benefit[plain]).mean()), *percentile_interval(gain)),
        lambda_d_interval=percentile_interval(np.array([d for d, _ in drawn])),
        lambda_b_interval=percentile_interval(np.array([b for _, b in drawn])),
        as_good=as_good,
    )


def held_out(
    settings: Sequence[tuple[float, float]], benefit: Floats, resamples: Resamples, seed: int
) -> dict[str, tuple[float, float, float]]:
    """Return the benefit of choosing on questions that took no part in the choice.

    Args:
        settings: λ_d and λ_b; (1, 1) is among them.
        benefit: Of each setting, and last of the random draw, array (settings + 1, questions).
        resamples: Of the questions; those of one group are left out together.

    Returns:
        Mean and 95 % interval of ``chosen``, ``nearest`` and ``random``.
    """
    questions = benefit.shape[1]
    groups = np.asarray(resamples.groups if len(resamples.groups) else range(questions))
    part = np.random.default_rng(seed).permutation(int(groups.max()) + 1)[groups] % FOLDS
    chosen = np.empty(questions)
    for fold in set(part.tolist()):
        out = part == fold
        # Few questions may all be of one part: then there is nothing to choose by.
        known = benefit[:-1, ~out] if (~out).any() else benefit[:-1]
        chosen[out] = benefit[best_of(settings, known.mean(axis=1)), out]
    rows = {
        "chosen": chosen,
        "nearest": benefit[settings.index((1.0, 1.0))],
        "random": benefit[-1],
    }
    return {name: (float(row.mean()), *interval_of(row, resamples)) for name, row in rows.items()}


def interval_of(values: Floats, resamples: Resamples) -> tuple[float, float]:
    """Return the 95 % interval of the mean of one number a question."""
    return percentile_interval(_means(values[None, :], resamples)[:, 0])


def _means(benefit: Floats, resamples: Resamples) -> Floats:
    """Return each setting's mean in each resample, array (resamples, settings)."""
    results = [w @ benefit.T / w.sum(axis=1, keepdims=True) for w in resamples.weights()]
    return np.concatenate(results)


#: λ_d from nothing but diversity to none.
LAMBDAS_D = tuple(round(step / 10, 1) for step in range(11))
#: λ_b with quality and without.
LAMBDAS_B = (0.9, 0.95, 1.0)
#: Questions that tell how long the rest will take.
_TRIED = 8

#: What a calibration can be for: a name, and what it is of a question's measures.
MEASURES: dict[str, Callable[[Verdicts], float]] = {
    "margin": lambda one: one.margin,
    "dpo": lambda one: one.preference,
    "mass": lambda one: float("nan") if one.mass is None else one.mass,
    "mc1": lambda one: float("nan") if one.mc1 is None else one.mc1,
}


@dataclass(frozen=True, slots=True)
class Cost:
    """The work of a calibration.

    Attributes:
        questions: Prompts that are not scored yet, each with its answers.
        seconds: How long it will take, by the first of them; ``None`` where nothing was tried.
    """

    questions: int
    answers: int
    tokens: int
    seconds: float | None


@dataclass(frozen=True, slots=True)
class SettingResult:
    """One setting of a sweep.

    Attributes:
        lambda_d: Share of the relevance; the rest is diversity's.
        lambda_b: Share of the similarity in the relevance; the rest is quality's.
        interval: Its 95 % interval.
        dpo: Mean over the questions of the mean of log σ(Δ).
        cosine: Mean cosine of the pairs that were shown: the lower, the more diverse.
    """

    lambda_d: float
    lambda_b: float
    benefit: float
    interval: tuple[float, float]
    dpo: float
    cosine: float | None


@dataclass(frozen=True, slots=True)
class Calibration:
    """The settings that help a model, with their benefit.

    Attributes:
        held_out: Benefit, with intervals, on questions that took no part in the choice, by name:
            ``chosen`` of whatever the other questions chose; ``nearest`` of λ_d = λ_b = 1; and
            ``random`` of cases drawn at random.
    """

    model: str
    measure: str
    questions: int
    k: int
    rows: Sequence[SettingResult]
    choice: Choice
    held_out: dict[str, tuple[float, float, float]]
    cost: Cost

    @property
    def selector(self) -> MarginalSelector:
        """The selection to use: what a planner takes as ``selection``."""
        return MarginalSelector(self.choice.lambda_d, self.choice.lambda_b)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON-plain form."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Sweep:
    """The settings that a calibration tries, and its number of questions.

    Attributes:
        lambdas_d: Values of λ_d, from 0 to 1.
        lambdas_b: Values of λ_b; other than 1 they weigh the store's quality (``measure_quality``),
            above 1 against a case.
        measure: What is to be best: one of ``MEASURES``.
        limit: At most so many questions, drawn at random.

    Raises:
        InputError: A number cannot be used, or there is no such measure.
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
    def settings(self) -> list[tuple[float, float]]:
        """λ_d and λ_b of each setting; (1, 1), plain similarity, is always among them."""
        return sorted(set(itertools.product(self.lambdas_d, self.lambdas_b)) | {(1.0, 1.0)})


@dataclass(frozen=True, slots=True)
class Prepared:
    """A calibration whose selections are made, before anything is scored but to tell its cost.

    Attributes:
        shown: For each setting what it shows before each question; last a random draw.
    """

    sweep: Sweep
    questions: Sequence[JudgedQuestion]
    shown: Sequence[Sequence[Shown]]
    cost: Cost


def prepare(
    store: CaseStore,
    scorer: AnswerScorer,
    questions: Sequence[JudgedQuestion] | None = None,
    sweep: Sweep | None = None,
    *,
    reading: CaseReading | None = None,
    progress: bool | None = None,
) -> Prepared:
    """Select for every setting, and say what the rest will cost; for the arguments see there.

    Raises:
        InputError: As ``calibrate``.
    """
    sweep, reading = sweep or Sweep(), reading or CaseReading.of(store)
    asked = list(questions) if questions is not None else reading.questions(store.all())
    if sweep.limit is not None and sweep.limit < len(asked):
        asked = random.Random(sweep.seed).sample(asked, sweep.limit)
    _check(asked, sweep.measure)
    shown = [
        shown_by(store, MarginalSelector(d, b), asked, sweep.k, reading, progress=progress)
        for d, b in sweep.settings
    ]
    shown.append(shown_at_random(store, asked, sweep.k, reading, sweep.seed))
    return Prepared(sweep, asked, shown, _cost(scorer, asked, shown))


def run(prepared: Prepared, scorer: AnswerScorer, *, progress: bool | None = None) -> Calibration:
    """Score what was prepared, and choose."""
    sweep, asked = prepared.sweep, prepared.questions
    result = verdicts(scorer, asked, prepared.shown, progress=progress)
    value = MEASURES[sweep.measure]
    benefit = np.array([[value(item) for item in row] for row in result])
    resamples = Resamples(len(asked), groups=_groups(asked), seed=sweep.seed)
    return Calibration(
        model=scorer.name,
        measure=sweep.measure,
        questions=len(asked),
        k=sweep.k,
        rows=_rows(prepared, result, benefit, resamples),
        choice=choose(sweep.settings, benefit[:-1], resamples),
        held_out=held_out(sweep.settings, benefit, resamples, sweep.seed),
        cost=prepared.cost,
    )


def calibrate(
    store: CaseStore,
    scorer: AnswerScorer,
    questions: Sequence[JudgedQuestion] | None = None,
    sweep: Sweep | None = None,
    *,
    reading: CaseReading | None = None,
    progress: bool | None = None,
) -> Calibration:
    """Find the selection of a store's cases that helps a model most.

    Args:
        scorer: The model; a ``RecordedScorer`` of it goes on where a killed run was.
        questions: Questions with their answers; by default the store's own cases, each asked
            without those of its group.
        progress: Whether bars are shown; see ``progress_bar``.

    Raises:
        InputError: A case is no demonstration, there are fewer than two questions, or they lack
            the wrong answers that the measure needs.
        ScoringError: See ``AnswerScorer``.
    """
    result = prepare(store, scorer, questions, sweep, reading=reading, progress=progress)
    return run(result, scorer, progress=progress)


def _rows(
    prepared: Prepared, found: Sequence[Sequence[Verdicts]], benefit: Floats, resamples: Resamples
) -> list[SettingResult]:
    rows = []
    settings = prepared.sweep.settings
    for (lambda_d, lambda_b), own, measured, shown in zip(
        settings, benefit, found, prepared.shown, strict=False
    ):
        cosines = [item.cosine for item in shown if item.cosine is not None]
        dpo = float(np.mean([item.preference for item in measured]))
        interval = interval_of(own, resamples)
        cosine = float(np.mean(cosines)) if cosines else None
        rows.append(SettingResult(lambda_d, lambda_b, float(own.mean()), interval, dpo, cosine))
    return rows


def _cost(
    scorer: AnswerScorer, questions: Sequence[JudgedQuestion], shown: Sequence[Sequence[Shown]]
) -> Cost:
    """Return the number of prompts to score, and the time by a few of them."""
    asked = list(
        dict.fromkeys(
            item.asked(question)
            for row in ([Shown()] * len(questions), *shown)
            for item, question in zip(row, questions, strict=True)
        )
    )
    recorded = scorer if isinstance(scorer, RecordedScorer) else None
    wanted = asked if recorded is None else recorded.missing(asked)
    tokens = scorer.tokens(wanted)
    seconds = None
    # Without a file, what is tried would be scored again.
    if recorded and wanted:
        # Spread over them, since prompts of different settings have different lengths.
        tried = wanted[:: max(1, len(wanted) // _TRIED)][:_TRIED]
        share = tokens / max(1, scorer.tokens(tried))
        started = time.perf_counter()
        score_all(scorer, tried, progress=False)
        seconds = (time.perf_counter() - started) * share
    return Cost(len(wanted), sum(len(item.answers) for item in wanted), tokens, seconds)


def _groups(questions: Sequence[JudgedQuestion]) -> list[int]:
    """Return a number a question; those that are left out together have the same."""
    numbers: dict[Any, int] = {}
    return [
        numbers.setdefault(question.group or question.question, len(numbers))
        for question in questions
    ]


def _check(questions: Sequence[JudgedQuestion], measure: str) -> None:
    if len(questions) < 2:
        raise InputError(
            f"A calibration has {len(questions)} questions. Give at least two; some hundred tell "
            "one setting from another."
        )
    with_wrong = {bool(question.wrong) for question in questions}
    if len(with_wrong) > 1:
        raise InputError(
            "Some questions have wrong answers and some have none, so that their margins are of "
            "two kinds. Give wrong answers to all of them, or to none."
        )
    if measure in ("mass", "mc1") and False in with_wrong:
        raise InputError(
            f"The measure {measure!r} needs wrong answers, and the questions have none. Take "
            "margin or dpo, or give wrong answers."
        )


def draw_calibration(axes: Any, found: Calibration) -> None:
    """Draw the benefit of each setting over the mean cosine of what it shows."""
    for lambda_b in sorted({row.lambda_b for row in found.rows}):
        rows = [r for r in found.rows if r.lambda_b == lambda_b and r.cosine is not None]
        _draw_line(axes, rows, f"λ_b = {lambda_b:g}")
    axes.axhline(found.held_out["random"][0], color="grey", linestyle=":", label="random cases")
    axes.set_xlabel("mean cosine of the pairs shown (left: more diverse)")
    axes.set_ylabel(f"{found.measure}, mean of {found.questions} questions")
    axes.set_title(f"{found.model}: each point a λ_d, {found.k} demonstrations")
    axes.legend()


def _draw_line(axes: Any, rows: Sequence[SettingResult], label: str) -> None:
    cosines = [row.cosine for row in rows]
    benefits = [row.benefit for row in rows]
    reach = [
        [row.benefit - row.interval[0] for row in rows],
        [row.interval[1] - row.benefit for row in rows],
    ]
    axes.errorbar(cosines, benefits, yerr=reach, marker="o", capsize=2, linewidth=1, label=label)
    for row in rows:
        axes.annotate(
            f"{row.lambda_d:g}",
            (row.cosine, row.benefit),
            textcoords="offset points",
            xytext=(4, 4),
            fontsize=7,
        )
