"""Measures of demonstrations, and the calibration of their selection, as in RAGSys.

Good demonstrations make a model give right answers a higher probability than wrong answers (Contal
and McGoldrick 2024, section 5)::

    from casewright.finetune.demonstrations import ModelScorer, calibrate
"""

from typing import Any
from warnings import warn

from casewright.finetune.demonstrations.calibrate import Calibration, Sweep, calibrate
from casewright.finetune.demonstrations.judged import (
    AnswerPrompt,
    AnswerScorer,
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
    "AnswerPrompt",
    "AnswerScorer",
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
    former_names = {"Asked": AnswerPrompt, "Verdicts": AnswerMeasures}
    if name not in former_names:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warn(f"{name} is now {former_names[name].__name__}", DeprecationWarning, stacklevel=2)
    return former_names[name]
