"""Training of the offline judge: logistic regression on the rounds of feedback loops."""

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
from casewright.finetune import judge_rounds
from casewright.finetune.judge_rounds import LoopRunner, Marker, Round, model_marker
from casewright.finetune.judge_sets.sets import LabelledSet
from casewright.stores.feedback import JudgeModel
from casewright.stores.feedback.features import FIRST, LATER
from casewright.stores.feedback.offline_judge import Regression
from casewright.stores.progress import progress_bar

#: Number of significant digits of a weight. Further digits would be noise, since the last digits of
#: an embedding depend on its batch.
DIGITS = 4
#: Inverse of the L2 penalty (scikit-learn's ``C``), on standardised features.
INVERSE_PENALTY = 0.03
#: Number of passes that add training rounds (DAgger: Ross, Gordon, Bagnell 2011). In the initial
#: rounds, the labels mark the candidates; in added rounds, the judge trained so far marks them.
PASS_COUNT = 1
#: The judge's thresholds in these passes: for the first round of a loop, and for later rounds.
INITIAL_THRESHOLDS = (0.25, 0.2)
#: Cross-validation with ``FOLD_COUNT`` folds chooses the final judge's thresholds from these.
FIRST_THRESHOLDS = (0.2, 0.3, 0.4)
LATER_THRESHOLDS = (0.1, 0.2, 0.3)
FOLD_COUNT = 3
#: F1 decides among the thresholds whose gain is at most this number of points below the best gain.
GAIN_TOLERANCE = 0.5
#: Number of controls: judges trained on shuffled labels.
CONTROL_COUNT = 5


@dataclass(frozen=True, slots=True)
class _QuestionRound:
    """A round of the loop of a set's question."""

    set_name: str
    question_id: str
    round: Round


def train_judge(sets: Sequence[LabelledSet]) -> JudgeModel:
    """Return a judge trained on the training questions, with its figures on the test questions.

    All sets have the same weight. The same data give the same model. Cross-validation on the
    training questions chooses the thresholds with the highest gain over a single search for as
    many cases. If gains differ by at most ``GAIN_TOLERANCE`` points, the F1 of the marks decides.
    The model's ``training`` holds the ``judge_figures`` of each set and strategy.

    Raises:
        InputError: No candidate is relevant, or all candidates are relevant.
        DependencyError: scikit-learn is not installed.
    """
    runners = [LoopRunner(item, strategy) for item in sets for strategy in item.strategies]
    training_count = sum(len(runner.labelled_set.training) for runner in runners)
    test_count = sum(len(runner.labelled_set.test) for runner in runners)
    total = training_count * (2 + PASS_COUNT) + test_count
    with progress_bar("Training the judge", total) as advance:
        rounds = _training_rounds(runners, judge_rounds.mark_by_labels)
        advance(training_count)
        for _ in range(PASS_COUNT):
            judge = _with_thresholds(_fit_judge(rounds), *INITIAL_THRESHOLDS)
            rounds += _training_rounds(runners, model_marker(judge))
            advance(training_count)
        thresholds = _best_thresholds(runners, rounds)
        advance(training_count)
        model = _with_thresholds(_fit_judge(rounds), *thresholds)
        controls = [_fit_control(rounds, model, seed) for seed in range(CONTROL_COUNT)]
        figures: dict[str, dict[str, Any]] = {item.name: {} for item in sets}
        for runner in runners:
            test_questions = runner.labelled_set.test
            result = judge_rounds.judge_figures(runner, test_questions, model, controls)
            figures[runner.labelled_set.name][runner.strategy.name] = result
            advance(len(test_questions))
    details = {
        "casewright": __version__,
        # JSON has no tuples. With lists, a model that is written and read again stays equal.
        "settings": {
            "inverse_penalty": INVERSE_PENALTY,
            "passes": PASS_COUNT,
            "start": list(INITIAL_THRESHOLDS),
            "first_thresholds": list(FIRST_THRESHOLDS),
            "later_thresholds": list(LATER_THRESHOLDS),
            "folds": FOLD_COUNT,
            "slack": GAIN_TOLERANCE,
            "controls": CONTROL_COUNT,
            "seed": 0,
        },
        "sets": {
            item.name: {
                **item.origin,
                "questions_training": len(item.training),
                "questions_test": len(item.test),
            }
            for item in sets
        },
        "test_figures": figures,
    }
    return replace(model, training=details)


def _training_rounds(runners: Sequence[LoopRunner], marker: Marker) -> list[_QuestionRound]:
    return [
        _QuestionRound(runner.labelled_set.name, question.id, round_)
        for runner in runners
        for question in runner.labelled_set.training
        for round_, _ in runner.rounds(question, marker)
    ]


def _fit_judge(rounds: Sequence[_QuestionRound]) -> JudgeModel:
    first = [item for item in rounds if not item.round.is_later]
    later = [item for item in rounds if item.round.is_later]
    return JudgeModel(_regression(first, FIRST, "first"), _regression(later, LATER, "later"))


def _regression(rounds: Sequence[_QuestionRound], names: Sequence[str], kind: str) -> Regression:
    """Return a logistic regression of the labels on the features with these names.

    The regression is fitted on standardised features; the returned weights are for raw features.
    """
    try:
        from sklearn.linear_model import LogisticRegression
        from sklearn.preprocessing import StandardScaler
    except ImportError as error:
        raise DependencyError(
            "Training a judge needs scikit-learn. Run: pip install 'casewright[finetune]'"
        ) from error
    labels = np.concatenate([item.round.labels for item in rounds] or [np.zeros(0, bool)])
    if labels.all() or not labels.any():
        raise InputError(
            f"No judge can be trained: of {len(labels)} candidates of {kind} rounds, "
            f"{labels.sum()} are relevant. A judge needs both relevant and other candidates; give "
            "more questions, and cases that answer no question."
        )
    features = np.concatenate([item.round.features for item in rounds])
    set_names = [item.set_name for item in rounds for _ in item.round.labels]
    candidate_counts = Counter(set_names)
    # Every set has the same weight, and the mean weight of a candidate is 1.
    weights = [len(labels) / len(candidate_counts) / candidate_counts[name] for name in set_names]
    scaler = StandardScaler().fit(features)
    model = LogisticRegression(C=INVERSE_PENALTY, max_iter=3000)
    model.fit(scaler.transform(features), labels, sample_weight=weights)
    unscaled_weights = model.coef_[0] / scaler.scale_
    bias = float(model.intercept_[0] - unscaled_weights @ scaler.mean_)
    *rounded, bias = (float(f"{value:.{DIGITS}g}") for value in (*unscaled_weights.tolist(), bias))
    return Regression(dict(zip(names, rounded, strict=True)), bias, threshold=0.5)


def _with_thresholds(model: JudgeModel, first: float, later: float) -> JudgeModel:
    return JudgeModel(replace(model.first, threshold=first), replace(model.later, threshold=later))


def _best_thresholds(
    runners: Sequence[LoopRunner], rounds: Sequence[_QuestionRound]
) -> tuple[float, float]:
    """Return the best thresholds of first and later rounds, as ``train_judge`` defines the best."""
    models = [
        _fit_judge([item for item in rounds if _fold_of(item.set_name, item.question_id) != fold])
        for fold in range(FOLD_COUNT)
    ]
    scores: dict[tuple[float, float], tuple[float, float]] = {}
    for thresholds in itertools.product(FIRST_THRESHOLDS, LATER_THRESHOLDS):
        markers = [model_marker(_with_thresholds(model, *thresholds)) for model in models]
        results = [_cross_validate(runner, markers) for runner in runners]
        gain, f1 = np.mean(results, axis=0)
        scores[thresholds] = float(gain), float(f1)
    min_gain = max(scores.values())[0] - GAIN_TOLERANCE
    return max(scores, key=lambda pair: (scores[pair][0] >= min_gain, scores[pair][1]))


def _cross_validate(runner: LoopRunner, markers: Sequence[Marker]) -> tuple[float, float]:
    """Return the mean gain and the mean F1 of the training questions.

    For each fold, ``markers`` has the marker of a judge that was not trained on the fold.
    """
    scores, question_counts = [], []
    training, name = runner.labelled_set.training, runner.labelled_set.name
    for fold, marker in enumerate(markers):
        if held_out := [q for q in training if _fold_of(name, q.id) == fold]:
            score = judge_rounds.loop_score(runner, held_out, marker)
            scores.append((score.gain, score.f1))
            question_counts.append(len(held_out))
    gain, f1 = np.average(scores, axis=0, weights=question_counts).tolist()
    return gain, f1


def _fold_of(set_name: str, question_id: str) -> int:
    digest = hashlib.sha256(f"fold {set_name} {question_id}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % FOLD_COUNT


def _fit_control(rounds: Sequence[_QuestionRound], model: JudgeModel, seed: int) -> JudgeModel:
    """Return a judge trained on shuffled labels; it marks as many candidates as ``model``."""
    control = _fit_judge(_shuffle_labels(rounds, seed))

    def threshold(*, is_later: bool) -> float:
        """Return the threshold at which the control marks the same share as ``model``."""
        names = LATER if is_later else FIRST
        trained, shuffled = (m.later if is_later else m.first for m in (model, control))
        parts = [item.round.features for item in rounds if item.round.is_later is is_later]
        features = np.concatenate(parts)
        marked_share = float(np.mean(trained.probabilities(features, names) >= trained.threshold))
        return float(np.quantile(shuffled.probabilities(features, names), 1 - marked_share))

    return _with_thresholds(control, threshold(is_later=False), threshold(is_later=True))


def _shuffle_labels(rounds: Sequence[_QuestionRound], seed: int) -> list[_QuestionRound]:
    """Return the rounds with labels that are permuted within each set and kind of round."""
    rng = np.random.default_rng(seed)
    shuffled = list(rounds)
    keys = [(item.set_name, item.round.is_later) for item in rounds]
    for key in dict.fromkeys(keys):
        members = [i for i, round_key in enumerate(keys) if round_key == key]
        parts = [rounds[i].round.labels for i in members]
        permuted = rng.permutation(np.concatenate(parts))
        ends = np.cumsum([len(part) for part in parts])
        for i, labels in zip(members, np.split(permuted, ends[:-1]), strict=True):
            shuffled[i] = replace(rounds[i], round=replace(rounds[i].round, labels=labels))
    return shuffled
