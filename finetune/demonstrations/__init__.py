"""RAGSys's measures of demonstrations, and the calibration of its selection.

What a retriever of demonstrations is worth is what they do to the model's probability of right and
wrong answers (RAGSys, Contal and McGoldrick 2024, section 5)::

    from casewright.finetune.demonstrations import ModelScorer, calibrate
"""

from casewright.finetune.demonstrations.calibrate import Calibration, Sweep, calibrate
from casewright.finetune.demonstrations.chat_scorer import ChatScorer
from casewright.finetune.demonstrations.judged import (
    AnswerScorer,
    Asked,
    Demonstration,
    JudgedQuestion,
    Likelihood,
    LocalScorer,
    QuestionForm,
)
from casewright.finetune.demonstrations.measures import Verdicts, measure
from casewright.finetune.demonstrations.model_scorer import ModelScorer, open_scorer
from casewright.finetune.demonstrations.quality import measure_quality
from casewright.finetune.demonstrations.recorded import RecordedScorer

__all__ = [
    "AnswerScorer",
    "Asked",
    "Calibration",
    "ChatScorer",
    "Demonstration",
    "JudgedQuestion",
    "Likelihood",
    "LocalScorer",
    "ModelScorer",
    "QuestionForm",
    "RecordedScorer",
    "Sweep",
    "Verdicts",
    "calibrate",
    "measure",
    "measure_quality",
    "open_scorer",
]
