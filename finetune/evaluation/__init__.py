"""How good plans are, measured as REAPER measures, for any planners side by side."""

from casewright.finetune.evaluation.evaluate import Evaluation, check_class, evaluate
from casewright.finetune.evaluation.figures import FIGURES, Figure
from casewright.finetune.evaluation.isomorphism import same_graph
from casewright.finetune.evaluation.item import EvaluationItem, items_of
from casewright.finetune.evaluation.markdown import to_markdown
from casewright.finetune.evaluation.scores import ClassScore, as_row, score_classes
from casewright.finetune.evaluation.tables import Table, tables
from casewright.finetune.evaluation.trivial import ShuffledPlans
from casewright.finetune.evaluation.verdict import (
    MULTI_STEP,
    PAPER_ARGUMENT_TOOLS,
    Verdict,
    judge,
    plan_class,
)

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
    "check_class",
    "evaluate",
    "items_of",
    "judge",
    "plan_class",
    "same_graph",
    "score_classes",
    "tables",
    "to_markdown",
]
