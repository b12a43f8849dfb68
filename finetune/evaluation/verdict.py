"""How one plan compares with its annotated query: tools, arguments, class."""

from __future__ import annotations

from dataclasses import dataclass

from casewright.finetune.evaluation.argument_values import value_right
from casewright.finetune.evaluation.isomorphism import same_graph
from casewright.planner import AnnotatedQuery, Plan

#: The paper measures arguments only on plans that use one of these.
PAPER_ARGUMENT_TOOLS = frozenset({"prod_search", "shipment_status"})
MULTI_STEP = "multi_step"


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one predicted plan compares with its annotated query.

    Attributes:
        gold: The query's class.
        predicted: The class of the predicted plan.
        tools: Its tool sequence is the gold one, or one that also counts as right.
        arguments: Tools and every argument are right.
        paper: The paper would measure this plan's arguments.
        milliseconds: Planning time.
    """

    gold: str
    predicted: str
    tools: bool
    arguments: bool
    paper: bool
    milliseconds: float


def judge(query: AnnotatedQuery, plan: Plan, milliseconds: float = 0.0) -> Verdict:
    """Compare a predicted plan with the annotated query.

    The arguments of another accepted tool sequence are compared, step by matching step, where it is
    the gold one in another order; where it has other tools, there are none to compare them with.
    """
    same_tools = plan.tools == query.plan.tools
    tools = same_tools or plan.tools in query.accept
    if same_tools:
        arguments = _arguments_right(query, plan)
    else:
        arguments = tools and same_graph(query, plan, arguments=True)
    return Verdict(
        gold=query.label,
        predicted=query.label if tools else plan_class(plan),
        tools=tools,
        arguments=arguments,
        paper=bool(PAPER_ARGUMENT_TOOLS & set(query.plan.tools)),
        milliseconds=milliseconds,
    )


def plan_class(plan: Plan) -> str:
    """Return the class of a plan: the one tool whose results nothing else needs, or multi-step."""
    needed = {reference.step for step in plan.steps for reference in step.references()}
    last = [step.tool for number, step in enumerate(plan.steps, 1) if number not in needed]
    return last[0] if len(last) == 1 else MULTI_STEP


def _arguments_right(query: AnnotatedQuery, plan: Plan) -> bool:
    for number, (gold, own) in enumerate(zip(query.plan.steps, plan.steps, strict=True), 1):
        if dict(gold.arguments).keys() != dict(own.arguments).keys():
            return False
        for name, value in gold.arguments:
            words = query.must.get(f"s{number}.{name}", ())
            given = own.argument(name)
            if given is None or not value_right(value, given, words):
                return False
    return True
