"""A judge without a language model: logistic regressions over features of the hits."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.errors import InputError
from casewright.stores.feedback.features import FIRST, LATER, feature_rows
from casewright.stores.feedback.judge import JudgeRequest, Verdicts

#: The version of the format of a judge's file, and the file of the shipped judge.
FORMAT, SHIPPED_FILE = 1, "judge.json"
#: Maximum of a logit and of its negative, since the exponential of a larger one may overflow.
MAX_LOGIT = 500.0
_ADVICE = "Train it anew: casewright finetune judge."


@dataclass(frozen=True, slots=True)
class Regression:
    """A logistic regression: p = 1 / (1 + exp(-(bias + sum of weight times feature))).

    Features are not standardised. ``threshold`` is a relevant candidate's minimum probability.
    """

    weights: Mapping[str, float]
    bias: float
    threshold: float

    def probabilities(self, rows: NDArray[np.float64], names: Sequence[str]) -> NDArray[np.float64]:
        """Return the probabilities, array (n,), of rows (n, f) with the columns ``names``."""
        weights = np.array([self.weights.get(name, 0.0) for name in names])
        logits = np.clip(rows @ weights + self.bias, -MAX_LOGIT, MAX_LOGIT)
        probabilities: NDArray[np.float64] = 1 / (1 + np.exp(-logits))
        return probabilities

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"threshold": self.threshold, "bias": self.bias, "weights": dict(self.weights)}


@dataclass(frozen=True, slots=True)
class JudgeModel:
    """The two logistic regressions of the offline judge.

    Attributes:
        first: The regression for the first round, before any candidate was found relevant.
        later: The regression for later rounds.
        training: Settings and figures of the training, for display.
    """

    first: Regression
    later: Regression
    training: Mapping[str, Any] = field(default_factory=dict)

    def save(self, file: Path) -> None:
        """Write the model; equal models make equal files. Raise ``InputError`` for a file error."""
        parts = {"first": self.first.to_json(), "later": self.later.to_json()}
        content = {"format": FORMAT, **parts, "training": self.training}
        text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            problem = f"The judge cannot be written to {file}: {error.strerror}."
            raise InputError(f"{problem} Give a file that you may write.") from error

    @classmethod
    def load(cls, file: str | Path) -> JudgeModel:
        """Read a model that ``casewright finetune judge`` wrote.

        Raise ``InputError`` if the file is not a judge of this format, or has unknown features.
        """
        if not isinstance(file, str | Path):
            raise InputError(f"{file!r:.80} is not a path. Give the path of a judge's file.")
        try:
            text = Path(file).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise InputError(f"{file} cannot be read ({error}). Give a judge's file.") from error
        return _parse_model(text, str(file))

    @classmethod
    def shipped(cls) -> JudgeModel:
        """Return the model that comes with the package, read once."""
        return _shipped_model()


class OfflineJudge:
    """A judge by logistic regression over scores, similarities and shared words.

    It is deterministic, spends no tokens, and needs no network; a round takes milliseconds.

    Args:
        model: ``None`` for the shipped model; ``JudgeModel.load(file)`` reads another.
        always_one: If no candidate is relevant in the first round, the most probable one counts as
            relevant, so that the feedback loop goes on.

    Raises:
        InputError: ``model`` is not a ``JudgeModel``, or the shipped model cannot be read.
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
        is_first = not request.relevant
        regression = self.model.first if is_first else self.model.later
        names = FIRST if is_first else LATER
        values = regression.probabilities(feature_rows(request), names).tolist()
        ids = [candidate.id for candidate in request.candidates]
        probabilities = dict(zip(ids, values, strict=True))
        relevant = {id_ for id_, p in probabilities.items() if p >= regression.threshold}
        if self._always_one and is_first and not relevant:
            relevant = {ids[int(np.argmax(values))]}
        return Verdicts(frozenset(relevant), probabilities)


@cache
def _shipped_model() -> JudgeModel:
    text = files(__package__).joinpath(SHIPPED_FILE).read_text(encoding="utf-8")
    return _parse_model(text, SHIPPED_FILE)


def _parse_model(text: str, file: str) -> JudgeModel:
    try:
        content = json.loads(text)
        version = content["format"]
        if version == FORMAT:
            training = content.get("training", {})
            if not isinstance(training, dict):
                raise TypeError("its training is not an object")
            first = _parse_regression(content["first"], FIRST, file)
            return JudgeModel(first, _parse_regression(content["later"], LATER, file), training)
    except InputError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        problem = f"{file} holds no judge ({type(error).__name__}: {error!s:.200})."
        raise InputError(f"{problem} Give a file that casewright finetune judge wrote.") from error
    problem = f"The judge in {file} has format {version!r:.80}; this version reads format {FORMAT}."
    raise InputError(f"{problem} {_ADVICE}")


def _parse_regression(content: Mapping[str, Any], features: Sequence[str], file: str) -> Regression:
    weights = {str(name): float(weight) for name, weight in content["weights"].items()}
    if unknown := sorted(set(weights) - set(features)):
        problem = f"The judge in {file} reads the features {unknown}, which this version lacks."
        raise InputError(f"{problem} {_ADVICE}")
    regression = Regression(weights, float(content["bias"]), float(content["threshold"]))
    if not all(map(math.isfinite, [*weights.values(), regression.bias])):
        raise ValueError("a weight is not finite")
    if not 0 <= regression.threshold <= 1:
        raise ValueError(f"a threshold is {regression.threshold}, not from 0 to 1")
    return regression
