"""RAGSys's measures of demonstrations, and the calibration of its selection.

A retriever of demonstrations is good if they raise the model's probability of right answers against
wrong ones (RAGSys, Contal and McGoldrick 2024, section 5)::

    from casewright.finetune.demonstrations import ModelScorer, calibrate
"""

from typing import Any
from warnings import warn

from casewright.finetune.demonstrations.calibrate import Calibration, Sweep, calibrate
from casewright.finetune.demonstrations.judged import (
    AnswerScorer,
    Asked,
    Demonstration,
    JudgedQuestion,
    Likelihood,
)
from casewright.finetune.demonstrations.measures import AnswerMeasures, measure
from casewright.finetune.demonstrations.model_scorer import ModelScorer, open_scorer
from casewright.finetune.demonstrations.quality import measure_quality
from casewright.finetune.demonstrations.recorded import RecordedScorer

__all__ = [
    "AnswerMeasures",
    "AnswerScorer",
    "Asked",
    "Calibration",
    "Demonstration",
    "JudgedQuestion",
    "Likelihood",
    "ModelScorer",
    "RecordedScorer",
    "Sweep",
    "calibrate",
    "measure",
    "measure_quality",
    "open_scorer",
]


def __getattr__(name: str) -> Any:
    if name != "Verdicts":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warn("Verdicts is now AnswerMeasures", DeprecationWarning, stacklevel=2)
    return AnswerMeasures
