"""Runs feedback loops for labelled questions, to train a judge and to measure it.

In each round of a loop, a judge marks the relevant candidates; the next search uses the marks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import compress
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from casewright.finetune.judge_sets.sets import LabelledQuestion, LabelledSet
from casewright.stores import Question
from casewright.stores.feedback import (
    Candidate,
    Feedback,
    JudgeModel,
    JudgeRequest,
    Strategy,
    case_text,
)
from casewright.stores.feedback.features import FIRST, LATER, feature_rows

#: The defaults of a feedback loop: numbers of cases in the first round and in a later round.
FIRST_K, MORE_K = 10, 5
#: The defaults of a feedback loop: maximum number of rounds, and maximum characters of a case.
MAX_ROUNDS, MAX_CHARACTERS = 5, 4_000
#: Number of bins of the calibration error.
BIN_COUNT = 10


@dataclass(frozen=True, slots=True)
class Round:
    """The n candidates of a round: ``features`` is (n, f); ``labels`` is (n,), true if relevant.

    ``is_later`` is false for the first round of a loop, which has fewer features.
    """

    is_later: bool
    ids: tuple[str, ...]
    features: NDArray[np.float64]
    labels: NDArray[np.bool_]


#: A function in place of a judge. It returns flags (n,), true for the candidates that it marks.
Marker = Callable[[Round], NDArray[np.bool_]]
#: Marks the relevant candidates, as a perfect judge does.
mark_by_labels: Marker = attrgetter("labels")


class LoopRunner:
    """Runs a set's feedback loops with a strategy, and caches searches and features."""

    def __init__(self, labelled_set: LabelledSet, strategy: Strategy) -> None:
        self.labelled_set, self.strategy = labelled_set, strategy
        self._query = cache(self._make_query)
        #: Keys: a question's id, the ids of the marked cases, "", the ids of the other cases.
        self._round_cache: dict[tuple[str, ...], tuple[list[Candidate], Round] | None] = {}

    def rounds(self, question: LabelledQuestion, marker: Marker) -> list[tuple[Round, list[str]]]:
        """Return each round of a question's loop, with the ids that ``marker`` marks in it."""
        relevant: list[Candidate] = []
        irrelevant: list[Candidate] = []
        results: list[tuple[Round, list[str]]] = []
        for number in range(1, MAX_ROUNDS + 1):
            next_round = self._next_round(question, Feedback(relevant, irrelevant), number)
            if next_round is None:
                break
            candidates, round_ = next_round
            marked = marker(round_)
            relevant += compress(candidates, marked)
            irrelevant += compress(candidates, ~marked)
            results.append((round_, [*compress(round_.ids, marked)]))
            if not marked.any():
                break
        return results

    def single_search(self, question: LabelledQuestion, count: int) -> list[str]:
        """Return the ids of the cases that a single search for ``count`` cases finds."""
        return [item.hit.case.id for item in self._query(question).best(count)]

    def _make_query(self, question: LabelledQuestion) -> Question:
        query = self.labelled_set.store.question(question.text)
        assert query is not None, "a labelled set has cases"
        return query

    def _next_round(
        self, question: LabelledQuestion, judged: Feedback, number: int
    ) -> tuple[list[Candidate], Round] | None:
        """Return the candidates and the round that come next; ``None`` if no case is left."""
        relevant = judged.relevant
        key = (question.id, *(c.id for c in relevant), "", *(c.id for c in judged.irrelevant))
        if key not in self._round_cache:
            query = self._query(question)
            hits = self.strategy.search(query, judged, MORE_K) if relevant else query.best(FIRST_K)
            candidates = []
            for item in hits:
                text = case_text(item.hit.case)[:MAX_CHARACTERS]
                candidates.append(Candidate(item.hit, text, item.nearness, number))
            self._round_cache[key] = None
            if candidates:
                features = feature_rows(JudgeRequest(question.text, relevant, candidates))
                ids = tuple(candidate.id for candidate in candidates)
                labels = np.array([id_ in question.relevant for id_ in ids], dtype=np.bool_)
                self._round_cache[key] = candidates, Round(bool(relevant), ids, features, labels)
        return self._round_cache[key]


def probabilities(model: JudgeModel, round_: Round) -> NDArray[np.float64]:
    """Return a model's probabilities (n,) that the candidates of a round are relevant."""
    regression, names = (model.later, LATER) if round_.is_later else (model.first, FIRST)
    return regression.probabilities(round_.features, names)


def model_marker(model: JudgeModel) -> Marker:
    """Return a function that marks candidates whose probability reaches the model's threshold."""

    def mark(round_: Round) -> NDArray[np.bool_]:
        threshold = (model.later if round_.is_later else model.first).threshold
        return probabilities(model, round_) >= threshold

    return mark


@dataclass(frozen=True, slots=True)
class LoopScore:
    """The results of loops: means over questions, but ``precision`` is over all marked candidates.

    Attributes:
        candidate_count: Number of candidates of a loop.
        recall: Share of the relevant cases that were candidates.
        single_recall: The recall of a single search for as many cases as the loop.
        marked_recall: Share of the relevant cases that were marked.
        precision: Share of the marked candidates that are relevant.
    """

    candidate_count: float
    recall: float
    single_recall: float
    marked_recall: float
    precision: float

    @property
    def gain(self) -> float:
        """Recall minus the recall of single searches, in percentage points."""
        return 100 * (self.recall - self.single_recall)

    @property
    def f1(self) -> float:
        """Harmonic mean of ``marked_recall`` and ``precision``."""
        total = self.marked_recall + self.precision
        return 2 * self.marked_recall * self.precision / total if total else 0.0


def loop_score(
    runner: LoopRunner, questions: Sequence[LabelledQuestion], marker: Marker
) -> LoopScore:
    """Return the results of the questions' loops in which ``marker`` marks the candidates."""
    question_scores, right_count, marked_count = [], 0, 0
    for question in questions:
        rounds = runner.rounds(question, marker)
        candidate_ids = [id_ for round_, _ in rounds for id_ in round_.ids]
        marked_ids = {id_ for _, ids in rounds for id_ in ids}
        relevant = question.relevant
        id_sets = (candidate_ids, runner.single_search(question, len(candidate_ids)), marked_ids)
        recalls = (len(relevant.intersection(ids)) / len(relevant) for ids in id_sets)
        question_scores.append([len(candidate_ids), *recalls])
        right_count += len(relevant & marked_ids)
        marked_count += len(marked_ids)
    candidate_count, recall, single, marked = np.mean(question_scores, axis=0).tolist()
    precision = right_count / max(marked_count, 1)
    return LoopScore(candidate_count, recall, single, marked, precision)


def judge_figures(
    runner: LoopRunner,
    questions: Sequence[LabelledQuestion],
    model: JudgeModel,
    controls: Sequence[JudgeModel],
) -> dict[str, float]:
    """Return the figures of a judge, ``model``, on questions that it was not trained on.

    ``judged``, ``found`` and ``single`` are the candidate count, the recall and the single recall
    of ``LoopScore``. All probabilities are computed in the loops of ``model``. ``controls`` are one
    or more judges trained on shuffled labels. ``gain_control`` is the first one's gain,
    ``auc_control`` the mean AUC of all. This mean can be above 0.5, since a control learns that the
    share of relevant candidates differs in first and later rounds.
    """
    model_score, label_score, control_score = (
        loop_score(runner, questions, marker)
        for marker in (model_marker(model), mark_by_labels, model_marker(controls[0]))
    )
    rounds = [round_ for q in questions for round_, _ in runner.rounds(q, model_marker(model))]
    labels = np.concatenate([round_.labels for round_ in rounds])
    model_probabilities, *control_probabilities = (
        np.concatenate([probabilities(judge, round_) for round_ in rounds])
        for judge in (model, *controls)
    )
    figures = {
        "judged": model_score.candidate_count,
        "found": model_score.recall,
        "single": model_score.single_recall,
        "gain": model_score.gain,
        "gain_labels": label_score.gain,
        "gain_control": control_score.gain,
        "marked_recall": model_score.marked_recall,
        "marked_precision": model_score.precision,
        "auc": auc(model_probabilities, labels),
        "auc_control": float(np.mean([auc(values, labels) for values in control_probabilities])),
        "brier": float(np.mean((model_probabilities - labels) ** 2)),
        "brier_base_rate": float(labels.mean() * (1 - labels.mean())),
        "ece": calibration_error(model_probabilities, labels),
    }
    return {"questions": len(questions), **{n: round(value, 4) for n, value in figures.items()}}


def auc(scores: NDArray[np.float64], labels: NDArray[np.bool_]) -> float:
    """Return the area under the ROC curve; 0.5 if all labels are equal."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(labels, scores)) if labels.any() and not labels.all() else 0.5


def calibration_error(scores: NDArray[np.float64], labels: NDArray[np.bool_]) -> float:
    """Return the expected calibration error over equal bins (Guo et al. 2017, equation 3)."""
    bins = np.minimum((scores * BIN_COUNT).astype(int), BIN_COUNT - 1)
    masks = [bins == number for number in set(bins.tolist())]
    return float(sum(m.mean() * abs(scores[m].mean() - labels[m].mean()) for m in masks))
