"""Training the offline judge: logistic regression on the states that a feedback loop reaches."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from casewright import __version__
from casewright.errors import DependencyError, InputError
from casewright.finetune.judge_data import LabelledSet
from casewright.finetune.judge_states import (
    Marks,
    Outcome,
    Round,
    Walker,
    by_model,
    gold,
    judge_figures,
    outcome,
)
from casewright.stores.feedback import JudgeModel
from casewright.stores.feedback.features import FIRST, LATER
from casewright.stores.feedback.judge_model import Regression
from casewright.stores.progress import progress_bar

#: Significant digits of a weight. More are noise: the last digit of an embedding depends on what it
#: was batched with, so that a text from the cache may differ in it from one that is encoded.
DIGITS = 4


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """Settings of a training of a judge.

    Attributes:
        inverse_penalty: C of the L2 penalty, on standardised features.
        passes: Times that the states the judge itself reaches are added to those that the labels
            reach (DAgger: Ross, Gordon and Bagnell 2011).
        start: Thresholds of the first round and of later ones, before any are chosen.
        folds: Of the training questions, to choose thresholds by.
        slack: Points of gain within which thresholds are alike; the better F1 is taken.
        controls: Judges that are trained on shuffled labels, to compare with.
    """

    inverse_penalty: float = 0.03
    passes: int = 1
    start: tuple[float, float] = (0.25, 0.2)
    first_thresholds: tuple[float, ...] = (0.2, 0.3, 0.4)
    later_thresholds: tuple[float, ...] = (0.1, 0.2, 0.3)
    folds: int = 3
    slack: float = 0.5
    controls: int = 5
    seed: int = 0


@dataclass(frozen=True, slots=True)
class _State:
    """A round, and the question and set that it is of."""

    labelled: str
    question: str
    round: Round


def train_judge(
    sets: Sequence[LabelledSet],
    settings: JudgeSettings | None = None,
    *,
    progress: bool | None = None,
) -> JudgeModel:
    """Train a judge on the training questions, and measure it on the others.

    All sets weigh alike. Thresholds are chosen by cross-validation over the training questions:
    the highest mean gain over single searches that judge as many, and of those within the slack
    the best F1 of what is called relevant. Equal data makes an equal model.

    Args:
        settings: ``None`` for those of the shipped judge.
        progress: Show a bar on stderr; ``None`` shows it on a terminal.

    Returns:
        The model; its ``training`` has the figures of each set and strategy, see ``judge_figures``.

    Raises:
        InputError: Nothing can be learned: no candidate of some kind of round is relevant, or all.
        DependencyError: scikit-learn is not installed.
    """
    chosen = settings or JudgeSettings()
    walkers = [(item, Walker(item, strategy)) for item in sets for strategy in item.strategies]
    training = sum(len(walker.training) for walker, _ in walkers)
    total = training * (2 + chosen.passes) + sum(len(walker.test) for walker, _ in walkers)
    with progress_bar("Training the judge", total, show=progress) as advance:
        states = _walked(walkers, gold)
        advance(training)
        for _ in range(chosen.passes):
            model = _with(_fitted(states, chosen), chosen.start)
            states += _walked(walkers, by_model(model))
            advance(training)
        thresholds = _thresholds(walkers, states, chosen)
        advance(training)
        model = _with(_fitted(states, chosen), thresholds)
        seeds = range(chosen.seed, chosen.seed + chosen.controls)
        controls = [_control(states, model, seed, chosen) for seed in seeds]
        figures: dict[str, dict[str, Any]] = {walker.name: {} for walker, _ in walkers}
        for item, walker in walkers:
            result = judge_figures(walker, item.test, model, controls)
            figures[item.name][walker.strategy.name] = result
            advance(len(item.test))
    facts = {
        "casewright": __version__,
        # As JSON has them, so that a model is the same once written and read.
        "settings": json.loads(json.dumps(asdict(chosen))),
        "sets": {
            item.name: {
                **item.settings,
                "questions_training": len(item.training),
                "questions_test": len(item.test),
            }
            for item in sets
        },
        "test_figures": figures,
    }
    return replace(model, training=facts)


def _walked(walkers: Sequence[tuple[LabelledSet, Walker]], marks: Marks) -> list[_State]:
    return [
        _State(labelled.name, asked.id, now)
        for labelled, walker in walkers
        for asked in labelled.training
        for now, _ in walker.rounds(asked, marks)
    ]


def _fitted(states: Sequence[_State], settings: JudgeSettings) -> JudgeModel:
    first = [state for state in states if not state.round.later]
    later = [state for state in states if state.round.later]
    return JudgeModel(
        _regression(first, FIRST, "first rounds", settings),
        _regression(later, LATER, "later rounds", settings),
    )


def _regression(
    states: Sequence[_State], names: Sequence[str], where: str, settings: JudgeSettings
) -> Regression:
    """Fit standardised features, and return the weights of the features as they are."""
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError as error:
        raise DependencyError(
            "Training a judge needs scikit-learn. Run: pip install 'casewright[finetune]'"
        ) from error
    labels = np.concatenate([state.round.labels for state in states] or [np.zeros(0, bool)])
    if labels.all() or not labels.any():
        raise InputError(
            f"No judge can be trained: of {len(labels)} candidates of {where}, {labels.sum()} are "
            "relevant. It needs some that are and some that are not; give more questions, and "
            "cases that answer none."
        )
    rows = np.concatenate([state.round.rows for state in states])
    sizes: Counter[str] = Counter()
    for state in states:
        sizes[state.labelled] += len(state.round.labels)
    # Every set weighs alike, and a candidate 1 in the mean.
    even = len(labels) / len(sizes)
    weights = np.concatenate(
        [np.full(len(state.round.labels), even / sizes[state.labelled]) for state in states]
    )
    mean, spread = rows.mean(axis=0), rows.std(axis=0)
    varies = spread > 1e-9
    scaled = np.where(varies, (rows - mean) / np.where(varies, spread, 1.0), 0.0)
    result = LogisticRegression(C=settings.inverse_penalty, max_iter=3000)
    result.fit(scaled, labels, sample_weight=weights)
    raw = np.where(varies, result.coef_[0] / np.where(varies, spread, 1.0), 0.0)
    bias = float(result.intercept_[0] - raw @ mean)
    facts = {name: _rounded(weight) for name, weight in zip(names, raw.tolist(), strict=True)}
    return Regression(facts, _rounded(bias), 0.5)


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _with(model: JudgeModel, thresholds: tuple[float, float]) -> JudgeModel:
    first, later = thresholds
    return JudgeModel(replace(model.first, threshold=first), replace(model.later, threshold=later))


def _thresholds(
    walkers: Sequence[tuple[LabelledSet, Walker]],
    states: Sequence[_State],
    settings: JudgeSettings,
) -> tuple[float, float]:
    """Return the thresholds that are best on questions that a fold's model was not trained on."""
    models = [
        _fitted([s for s in states if _fold(s.labelled, s.question, settings) != n], settings)
        for n in range(settings.folds)
    ]
    tried: dict[tuple[float, float], tuple[float, float]] = {}
    for thresholds in itertools.product(settings.first_thresholds, settings.later_thresholds):
        marks = [by_model(_with(model, thresholds)) for model in models]
        results = [_cross(labelled, walker, marks, settings) for labelled, walker in walkers]
        gain, f1 = np.mean(results, axis=0)
        tried[thresholds] = float(gain), float(f1)
    most = max(gain for gain, _ in tried.values())
    near = {at: f1 for at, (gain, f1) in tried.items() if gain >= most - settings.slack}
    return max(near, key=lambda at: near[at])


def _cross(
    labelled: LabelledSet, walker: Walker, marks: Sequence[Marks], settings: JudgeSettings
) -> tuple[float, float]:
    """Return gain and F1, mean over all training questions, each by its own fold's marks."""
    parts: list[tuple[int, Outcome]] = []
    for number, own in enumerate(marks):
        held = [q for q in labelled.training if _fold(labelled.name, q.id, settings) == number]
        if held:
            parts.append((len(held), outcome(walker, held, own)))
    counts = [count for count, _ in parts]
    return (
        float(np.average([part.gain for _, part in parts], weights=counts)),
        float(np.average([part.f1 for _, part in parts], weights=counts)),
    )


def _fold(labelled: str, question: str, settings: JudgeSettings) -> int:
    digest = hashlib.sha256(f"fold {labelled} {question}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % settings.folds


def _control(
    states: Sequence[_State], model: JudgeModel, seed: int, settings: JudgeSettings
) -> JudgeModel:
    """Return a judge that learned shuffled labels, and calls as many relevant as the model."""
    control = _fitted(_shuffled(states, seed), settings)
    thresholds = []
    for later, ours, theirs in (
        (False, model.first, control.first),
        (True, model.later, control.later),
    ):
        names = LATER if later else FIRST
        rows = np.concatenate([state.round.rows for state in states if state.round.later is later])
        share = float(np.mean(ours.probabilities(rows, names) >= ours.threshold))
        thresholds.append(float(np.quantile(theirs.probabilities(rows, names), 1 - share)))
    return _with(control, (thresholds[0], thresholds[1]))


def _shuffled(states: Sequence[_State], seed: int) -> list[_State]:
    """Return the states with the labels of their candidates permuted, set by set."""
    draw = np.random.default_rng(seed)
    results = list(states)
    for key in dict.fromkeys((state.labelled, state.round.later) for state in states):
        at = [n for n, state in enumerate(states) if (state.labelled, state.round.later) == key]
        labels = draw.permutation(np.concatenate([states[n].round.labels for n in at]))
        for n in at:
            count = len(states[n].round.labels)
            results[n] = replace(results[n], round=replace(results[n].round, labels=labels[:count]))
            labels = labels[count:]
    return results
