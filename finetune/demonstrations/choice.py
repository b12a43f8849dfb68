"""The best of several settings, how sure that is, and what choosing gains on other questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from casewright.finetune.demonstrations.measures import Floats
from casewright.finetune.evaluation.intervals import Resamples, percentile_interval

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
    made = [w @ benefit.T / w.sum(axis=1, keepdims=True) for w in resamples.weights()]
    return np.concatenate(made)
