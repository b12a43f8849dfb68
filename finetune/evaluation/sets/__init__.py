"""Public test sets in the plan language. They are for measuring planners, never for training."""

from casewright.finetune.evaluation.sets.converted import Converted
from casewright.finetune.evaluation.sets.nestful import read_nestful
from casewright.finetune.evaluation.sets.tau2 import read_tau2

__all__ = ["Converted", "read_nestful", "read_tau2"]
