"""The offline judge's model: two logistic regressions, their thresholds and their figures."""

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
from casewright.stores.feedback.features import FIRST, LATER

FORMAT = 1
FILE = "judge.json"
#: Beyond this a logit tells nothing more, and its exponential may overflow.
LARGEST = 500.0
_AGAIN = "Train it anew: casewright finetune judge."


@dataclass(frozen=True, slots=True)
class Regression:
    """A logistic regression: p = 1 / (1 + exp(-(bias + sum of weight times feature))).

    Attributes:
        weights: Feature name to weight; of the feature as it is, not standardised.
        bias: The constant.
        threshold: From which probability on a candidate counts as relevant.
    """

    weights: Mapping[str, float]
    bias: float
    threshold: float

    def probabilities(self, rows: NDArray[np.float64], names: Sequence[str]) -> NDArray[np.float64]:
        """Return the probabilities, array (n,), of rows of these features, array (n, f)."""
        weights = np.array([self.weights.get(name, 0.0) for name in names])
        logits = np.clip(rows @ weights + self.bias, -LARGEST, LARGEST)
        made: NDArray[np.float64] = 1 / (1 + np.exp(-logits))
        return made

    def to_json(self) -> dict[str, Any]:
        """Return the JSON-plain form."""
        return {"threshold": self.threshold, "bias": self.bias, "weights": dict(self.weights)}


@dataclass(frozen=True, slots=True)
class JudgeModel:
    """What the offline judge judges by.

    Attributes:
        first: While nothing relevant is known.
        later: Once something is.
        training: Settings and figures of the training, for people.
    """

    first: Regression
    later: Regression
    training: Mapping[str, Any] = field(default_factory=dict)

    def save(self, file: Path) -> None:
        """Write the model; the same model is the same file, byte for byte.

        Raises:
            InputError: The file cannot be written.
        """
        told = {
            "format": FORMAT,
            "first": self.first.to_json(),
            "later": self.later.to_json(),
            "training": self.training,
        }
        text = json.dumps(told, indent=1, ensure_ascii=False, allow_nan=False)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise InputError(
                f"The judge cannot be written to {file}: {error.strerror}. Give a file that you "
                "may write."
            ) from error

    @classmethod
    def load(cls, file: str | Path) -> JudgeModel:
        """Read a model that ``casewright finetune judge`` wrote.

        Raises:
            InputError: The file holds no judge, one of another format, or one with features that
                this version does not know.
        """
        if not isinstance(file, str | Path):
            raise InputError(f"{file!r:.80} is no path. Give the path of a judge's file.")
        try:
            text = Path(file).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise InputError(f"{file} cannot be read ({error}). Give a judge's file.") from error
        return _read(text, str(file))

    @classmethod
    def shipped(cls) -> JudgeModel:
        """Return the model that comes with the package, read once."""
        return _shipped()


@cache
def _shipped() -> JudgeModel:
    place = files("casewright.stores.feedback") / FILE
    return _read(place.read_text(encoding="utf-8"), FILE)


def _read(text: str, where: str) -> JudgeModel:
    try:
        told = json.loads(text)
        found = told["format"]
        if found == FORMAT:
            training = told.get("training", {})
            if not isinstance(training, dict):
                raise TypeError("its training is no object")
            first = _regression(told["first"], FIRST, where)
            return JudgeModel(first, _regression(told["later"], LATER, where), training)
    except InputError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(
            f"{where} holds no judge ({type(error).__name__}: {error!s:.200}). Give a file that "
            "casewright finetune judge wrote."
        ) from error
    raise InputError(
        f"The judge in {where} has format {found!r:.80}; this version reads {FORMAT}. {_AGAIN}"
    )


def _regression(told: Mapping[str, Any], known: Sequence[str], where: str) -> Regression:
    weights = {str(name): float(weight) for name, weight in told["weights"].items()}
    if unknown := sorted(set(weights) - set(known)):
        raise InputError(
            f"The judge in {where} reads the features {unknown}, which this version does not "
            f"know. {_AGAIN}"
        )
    made = Regression(weights, float(told["bias"]), float(told["threshold"]))
    if not all(map(math.isfinite, [*weights.values(), made.bias])):
        raise ValueError("a weight is not finite")
    if not 0 <= made.threshold <= 1:
        raise ValueError(f"a threshold is {made.threshold}, not from 0 to 1")
    return made
