"""The judge without a language model: a small calibrated scorer over what a search knows anyway."""

from __future__ import annotations

import numpy as np

from casewright.errors import InputError
from casewright.stores.feedback.features import FIRST, LATER, feature_rows
from casewright.stores.feedback.judge import JudgeRequest, Verdicts
from casewright.stores.feedback.judge_model import JudgeModel


class OfflineJudge:
    """Judges by a logistic regression over scores, similarities and shared words.

    It is deterministic, spends no tokens, and needs no network: a round takes milliseconds. How
    good its probabilities are, on questions that it was not trained on, ``model.training`` tells.
    Each candidate is judged for itself: no candidate's text changes a verdict on another.

    Args:
        model: What it judges by; ``None`` takes the shipped one, ``JudgeModel.load(file)`` reads
            one that ``casewright finetune judge`` wrote.
        always_one: Where nothing is relevant in a first round, call the most probable candidate
            relevant, so that the search goes on with it.

    Raises:
        InputError: The model is none, a file's name for example; or the shipped one cannot be read.
    """

    name = "offline"

    def __init__(self, model: JudgeModel | None = None, *, always_one: bool = False) -> None:
        if not isinstance(model, JudgeModel | None):
            raise InputError(
                f"OfflineJudge was given model={model!r:.80}. Give a JudgeModel: "
                "JudgeModel.load(file) reads one."
            )
        self.model = JudgeModel.shipped() if model is None else model
        self._always_one = always_one

    def judge(self, request: JudgeRequest) -> Verdicts:
        """Return verdicts with the probability of each candidate; see ``Judge``."""
        if not request.candidates:
            return Verdicts(frozenset())
        later = bool(request.relevant)
        by = self.model.later if later else self.model.first
        made = by.probabilities(feature_rows(request), LATER if later else FIRST)
        ids = [one.id for one in request.candidates]
        chosen = {id_ for id_, p in zip(ids, made.tolist(), strict=True) if p >= by.threshold}
        if self._always_one and not later and not chosen:
            chosen = {ids[int(np.argmax(made))]}
        return Verdicts(frozenset(chosen), dict(zip(ids, made.tolist(), strict=True)))
