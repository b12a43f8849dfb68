"""Evaluation of the plans of several planners on the same questions, as in REAPER."""

from casewright.finetune.evaluation.evaluate import Evaluation, evaluate
from casewright.finetune.evaluation.figures import (
    FIGURES,
    ClassScore,
    Figure,
    as_row,
    score_classes,
)
from casewright.finetune.evaluation.item import EvaluationItem, ShuffledPlans, items_of
from casewright.finetune.evaluation.tables import Table, tables
from casewright.finetune.evaluation.verdict import PAPER_ARGUMENT_TOOLS, Verdict, judge, same_graph
from casewright.finetune.plan_shape import MULTI_STEP, plan_class

__all__ = [
    "FIGURES",
    "MULTI_STEP",
    "PAPER_ARGUMENT_TOOLS",
    "ClassScore",
    "Evaluation",
    "EvaluationItem",
    "Figure",
    "ShuffledPlans",
    "Table",
    "Verdict",
    "as_row",
    "evaluate",
    "items_of",
    "judge",
    "plan_class",
    "same_graph",
    "score_classes",
    "tables",
]
