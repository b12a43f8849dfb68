"""The plan language, the prompt, and the planners."""

from casewright.planner.annotated import AnnotatedQuery, QueryRecord, read_annotated
from casewright.planner.case_planner import CasePlanner
from casewright.planner.chat_call import chat_model
from casewright.planner.chat_planner import ChatPlanner
from casewright.planner.model_planner import ModelPlanner
from casewright.planner.narrowing import narrowing
from casewright.planner.parse import parse_plan
from casewright.planner.pinned import PinnedPlan, pin_plan, read_pinned
from casewright.planner.plan import (
    ContextRef,
    ListValue,
    Literal,
    Plan,
    QuestionRef,
    Step,
    StepRef,
    format_plan,
)
from casewright.planner.plan_cases import plan_schema, plan_store
from casewright.planner.plan_diff import StepDifference, diff_plans
from casewright.planner.price import Price
from casewright.planner.prompt import Prompt, render_prompt
from casewright.planner.reader import Reader
from casewright.planner.request import Planner, PlanRequest, PlanResult, Turn
from casewright.planner.spans import is_span
from casewright.planner.validate import MAX_STEPS, validate_plan, violations

__all__ = [
    "MAX_STEPS",
    "AnnotatedQuery",
    "CasePlanner",
    "ChatPlanner",
    "ContextRef",
    "ListValue",
    "Literal",
    "ModelPlanner",
    "PinnedPlan",
    "Plan",
    "PlanRequest",
    "PlanResult",
    "Planner",
    "Price",
    "Prompt",
    "QueryRecord",
    "QuestionRef",
    "Reader",
    "Step",
    "StepDifference",
    "StepRef",
    "Turn",
    "chat_model",
    "diff_plans",
    "format_plan",
    "is_span",
    "narrowing",
    "parse_plan",
    "pin_plan",
    "plan_schema",
    "plan_store",
    "read_annotated",
    "read_pinned",
    "render_prompt",
    "validate_plan",
    "violations",
]
