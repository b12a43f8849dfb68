"""Training of the offline judge: logistic regression on the states of feedback loops."""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from casewright import __version__
from casewright.errors import DependencyError, InputError
from casewright.finetune.judge_data import LabelledSet
from casewright.finetune.judge_states import (
    Marks,
    Round,
    Walker,
    by_model,
    gold,
    judge_figures,
    loop_score,
)
from casewright.stores.feedback import JudgeModel
from casewright.stores.feedback.features import FIRST, LATER
from casewright.stores.feedback.offline_judge import Regression
from casewright.stores.progress import progress_bar

#: Number of significant digits of a weight. Further digits would be noise: the last digits of an
#: embedding depend on its batch, so a cached embedding may differ from a new one.
DIGITS = 4
#: Inverse of the L2 penalty (scikit-learn's ``C``), on standardised features.
INVERSE_PENALTY = 0.03
#: Number of passes that add the rounds of loops with the judge to the rounds of loops with the
#: labels (DAgger: Ross, Gordon and Bagnell 2011).
PASSES = 1
#: Thresholds for the first round and for later rounds in these passes.
START = (0.25, 0.2)
FIRST_THRESHOLDS = (0.2, 0.3, 0.4)
LATER_THRESHOLDS = (0.1, 0.2, 0.3)
#: Number of folds of the training questions to choose thresholds.
FOLDS = 3
#: Thresholds whose gain is within this number of points of the best are compared by F1.
SLACK = 0.5
#: Number of controls: judges trained on shuffled labels.
CONTROLS = 5


@dataclass(frozen=True, slots=True)
class _State:
    """A round of a question of a set."""

    labelled: str
    question: str
    round: Round


def train_judge(sets: Sequence[LabelledSet], *, progress: bool | None = None) -> JudgeModel:
    """Return a judge that is trained on the training questions, with figures of the test questions.

    All sets have the same weight. Thresholds are chosen by cross-validation over the training
    questions: by the gain over a single search for as many cases, and among the gains within
    ``SLACK`` points of the best by the F1 of the marks. Equal data makes an equal model. The
    model's ``training`` has the figures of each set and strategy, see ``judge_figures``.

    Args:
        progress: Show a bar on stderr; ``None`` shows it on a terminal.

    Raises:
        InputError: No candidate is relevant, or all are.
        DependencyError: scikit-learn is not installed.
    """
    walkers = [(item, Walker(item, strategy)) for item in sets for strategy in item.strategies]
    training = sum(len(walker.training) for walker, _ in walkers)
    total = training * (2 + PASSES) + sum(len(walker.test) for walker, _ in walkers)
    with progress_bar("Training the judge", total, show=progress) as advance:
        states = _walk(walkers, gold)
        advance(training)
        for _ in range(PASSES):
            states += _walk(walkers, by_model(_with(_fit(states), START)))
            advance(training)
        thresholds = _thresholds(walkers, states)
        advance(training)
        model = _with(_fit(states), thresholds)
        controls = [_control(states, model, seed) for seed in range(CONTROLS)]
        figures: dict[str, dict[str, Any]] = {walker.name: {} for walker, _ in walkers}
        for item, walker in walkers:
            result = judge_figures(walker, item.test, model, controls)
            figures[item.name][walker.strategy.name] = result
            advance(len(item.test))
    facts = {
        "casewright": __version__,
        # Lists as in JSON: a model is the same after it is written and read.
        "settings": {
            "inverse_penalty": INVERSE_PENALTY,
            "passes": PASSES,
            "start": list(START),
            "first_thresholds": list(FIRST_THRESHOLDS),
            "later_thresholds": list(LATER_THRESHOLDS),
            "folds": FOLDS,
            "slack": SLACK,
            "controls": CONTROLS,
            "seed": 0,
        },
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


def _walk(walkers: Sequence[tuple[LabelledSet, Walker]], marks: Marks) -> list[_State]:
    return [
        _State(labelled.name, question.id, state)
        for labelled, walker in walkers
        for question in labelled.training
        for state, _ in walker.rounds(question, marks)
    ]


def _fit(states: Sequence[_State]) -> JudgeModel:
    first = [state for state in states if not state.round.later]
    later = [state for state in states if state.round.later]
    return JudgeModel(
        _regression(first, FIRST, "first rounds"), _regression(later, LATER, "later rounds")
    )


def _regression(states: Sequence[_State], names: Sequence[str], where: str) -> Regression:
    """Return a regression on standardised features, with the weights of the raw features."""
    try:
        from sklearn.linear_model import LogisticRegression
        from sklearn.preprocessing import StandardScaler
    except ImportError as error:
        raise DependencyError(
            "Training a judge needs scikit-learn. Run: pip install 'casewright[finetune]'"
        ) from error
    labels = np.concatenate([state.round.labels for state in states] or [np.zeros(0, bool)])
    if labels.all() or not labels.any():
        raise InputError(
            f"No judge can be trained: of {len(labels)} candidates of {where}, {labels.sum()} are "
            "relevant. A judge needs both relevant and other candidates; give more questions, and "
            "cases that answer none."
        )
    rows = np.concatenate([state.round.rows for state in states])
    owners = [state.labelled for state in states for _ in state.round.labels]
    sizes = Counter(owners)
    # Every set has the same weight, and the mean weight of a candidate is 1.
    weights = [len(labels) / len(sizes) / sizes[owner] for owner in owners]
    scaler = StandardScaler().fit(rows)
    result = LogisticRegression(C=INVERSE_PENALTY, max_iter=3000)
    result.fit(scaler.transform(rows), labels, sample_weight=weights)
    raw = result.coef_[0] / scaler.scale_
    bias = float(result.intercept_[0] - raw @ scaler.mean_)
    facts = {name: _rounded(weight) for name, weight in zip(names, raw.tolist(), strict=True)}
    return Regression(facts, _rounded(bias), 0.5)


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _with(model: JudgeModel, thresholds: tuple[float, float]) -> JudgeModel:
    first, later = thresholds
    return JudgeModel(replace(model.first, threshold=first), replace(model.later, threshold=later))


def _thresholds(
    walkers: Sequence[tuple[LabelledSet, Walker]], states: Sequence[_State]
) -> tuple[float, float]:
    """Return the best thresholds by cross-validation."""
    models = [
        _fit([s for s in states if _fold(s.labelled, s.question) != number])
        for number in range(FOLDS)
    ]
    scores: dict[tuple[float, float], tuple[float, float]] = {}
    for thresholds in itertools.product(FIRST_THRESHOLDS, LATER_THRESHOLDS):
        marks = [by_model(_with(model, thresholds)) for model in models]
        results = [_cross_validated(labelled, walker, marks) for labelled, walker in walkers]
        gain, f1 = np.mean(results, axis=0)
        scores[thresholds] = float(gain), float(f1)
    enough = max(scores.values())[0] - SLACK
    return max(scores, key=lambda pair: (scores[pair][0] >= enough, scores[pair][1]))


def _cross_validated(
    labelled: LabelledSet, walker: Walker, marks: Sequence[Marks]
) -> tuple[float, float]:
    """Return gain and F1, as means over the training questions with the marks of their folds."""
    scores, counts = [], []
    for number, fold_marks in enumerate(marks):
        held_out = [q for q in labelled.training if _fold(labelled.name, q.id) == number]
        if held_out:
            score = loop_score(walker, held_out, fold_marks)
            scores.append((score.gain, score.f1))
            counts.append(len(held_out))
    gain, f1 = np.average(scores, axis=0, weights=counts).tolist()
    return gain, f1


def _fold(labelled: str, question: str) -> int:
    digest = hashlib.sha256(f"fold {labelled} {question}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % FOLDS


def _control(states: Sequence[_State], model: JudgeModel, seed: int) -> JudgeModel:
    """Return a judge trained on shuffled labels that marks as many candidates as the model."""
    control = _fit(_shuffled(states, seed))
    thresholds = []
    for later, names, ours, theirs in (
        (False, FIRST, model.first, control.first),
        (True, LATER, model.later, control.later),
    ):
        rows = np.concatenate([state.round.rows for state in states if state.round.later is later])
        share = float(np.mean(ours.probabilities(rows, names) >= ours.threshold))
        thresholds.append(float(np.quantile(theirs.probabilities(rows, names), 1 - share)))
    return _with(control, (thresholds[0], thresholds[1]))


def _shuffled(states: Sequence[_State], seed: int) -> list[_State]:
    """Return the states with candidates' labels permuted within each set and kind of round."""
    draw = np.random.default_rng(seed)
    results = list(states)
    for key in dict.fromkeys((state.labelled, state.round.later) for state in states):
        members = [n for n, s in enumerate(states) if (s.labelled, s.round.later) == key]
        labels = draw.permutation(np.concatenate([states[n].round.labels for n in members]))
        for n in members:
            count = len(states[n].round.labels)
            results[n] = replace(results[n], round=replace(results[n].round, labels=labels[:count]))
            labels = labels[count:]
    return results
