"""Tools, questions and scripted planners of a small shop, for tests of the evaluation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from casewright.finetune.evaluation import EvaluationItem, items_of
from casewright.planner import AnnotatedQuery, Plan, PlanRequest, PlanResult, parse_plan
from casewright.tools import Parameter, Source, Toolbox, ToolSpec


def tool(name: str, *parameters: str, results: Sequence[str] = ("id", "text")) -> ToolSpec:
    sources = frozenset({Source.LITERAL, Source.STEP, Source.QUESTION})
    specs = tuple(Parameter(parameter, sources=sources) for parameter in parameters)
    return ToolSpec(name, f"The tool {name}.", specs, tuple(results))


TOOLS = Toolbox([tool("find", "query"), tool("fact", "of", "query"), tool("desk", "query")])
FIND = 's1 = find(query="lamp")'
FACT = 's1 = find(query="lamp")\ns2 = fact(of=s1.id, query=question)'
DESK = "s1 = desk(query=question)"
NOTHING = "s1 = no_evidence()"


def gold_query(number: int, plan: str, label: str, **fields: Any) -> AnnotatedQuery:
    record = {"id": f"q{number}", "query": f"question {number}", "plan": plan, "class": label}
    return AnnotatedQuery.read({**record, **fields})


def items(*plans: tuple[str, str]) -> list[EvaluationItem]:
    """Return one item per pair of gold plan and class."""
    return items_of([gold_query(n, *plan) for n, plan in enumerate(plans)], TOOLS)


class ScriptedPlanner:
    """A planner that takes its answers from a function and records its requests."""

    def __init__(self, answer: Callable[[PlanRequest], PlanResult], name: str = "scripted") -> None:
        self.answer = answer
        self.name = name
        self.requests: list[PlanRequest] = []

    def plan(self, request: PlanRequest) -> PlanResult:
        self.requests.append(request)
        return self.answer(request)

    async def aplan(self, request: PlanRequest) -> PlanResult:
        return self.plan(request)


def always(plan: str | Plan, **fields: Any) -> ScriptedPlanner:
    """Return a planner that answers every question with the same plan."""
    parsed = parse_plan(plan) if isinstance(plan, str) else plan
    return ScriptedPlanner(lambda request: PlanResult(parsed, "scripted", **fields))


def gold(of: Sequence[EvaluationItem]) -> ScriptedPlanner:
    """Return a planner that answers with the gold plans, whatever tools it is given."""
    plans = {item.query.query: item.query.plan for item in of}
    return ScriptedPlanner(
        lambda request: PlanResult(plans[request.question], "gold", milliseconds=2.0)
    )
