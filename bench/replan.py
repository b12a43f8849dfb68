"""The gain of replanning: the shares of answered questions while a tool finds nothing or fails."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple, get_args

from casewright.bench.harness import TestedDomain, mean, open_domain, tracked
from casewright.bench.report import Report
from casewright.domains.gold_plans import run_plan, scope_combinations
from casewright.errors import ToolError
from casewright.graph import Answer, Limits, RunContext, build_graph
from casewright.graph.evidence import collect_evidence
from casewright.graph.mend import Mend
from casewright.planner import AnnotatedQuery, Plan, Planner, PlanRequest, PlanResult
from casewright.planner.continuing import as_question
from casewright.planner.fallback import FallbackPlanner
from casewright.planner.named import CASE_PLANNER, make_planner
from casewright.tools import NO_EVIDENCE, CallContext, Toolbox, ToolSpec

Fault = Literal["none", "miss", "failure"]  # the fault of one tool; a miss is an empty result
#: When systems replan: "off" never, "failure" after failures, "empty" also after empty results.
SYSTEMS: dict[str, Mend] = {"off": "off", "failure": "failure", "empty": "empty"}
SYSTEMS |= {"any tool": "empty", "same tool": "empty"}  # controls
NOTES = (
    "answered: share of runs whose evidence has the first result of each final step of the gold "
    "plan. miss: a random tool of the plan returns nothing for the arguments of its first call; "
    "failure: all calls of this tool fail. Controls repeat the search for the whole question: “any "
    "tool” by the tool of the fallback plan, “same tool” by the tool without results.",
)


class _Question(NamedTuple):
    """A query, a scope in which its gold plan has results, and the texts that evidence needs."""

    query: AnnotatedQuery
    scope: Mapping[str, str]
    gold_texts: frozenset[str]  # the first results of the gold plan's final steps


class _AnyToolPlanner(FallbackPlanner):
    """A control that replans with the fallback plan: one tool call with the whole question."""

    name = "any tool"

    def __init__(self, planner: Planner) -> None:
        self._planner = planner

    def plan(self, request: PlanRequest) -> PlanResult:
        is_replanning = bool(request.failures)
        return super().plan(request) if is_replanning else self._planner.plan(request)


class _SameToolPlanner(_AnyToolPlanner):
    """A control that repeats the first plan, with the whole question for tools without results."""

    def plan(self, request: PlanRequest) -> PlanResult:
        if not request.failures:
            self._first_result = self._planner.plan(request)
            return self._first_result
        unanswered = {step.tool for step in request.failures}
        steps = self._first_result.plan.steps
        plan = Plan(tuple(s.mapped(as_question) if s.tool in unanswered else s for s in steps))
        return self._first_result if any(request.violations(plan)) else PlanResult(plan, self.name)


def measure_replan(domain_name: str, seeds: int) -> Report:
    """Answer the test queries while a random tool of each plan has no results, or fails.

    With a fault, each query runs ``seeds`` times, each time with a newly drawn tool.
    """
    with open_domain(domain_name) as tested:
        questions = list(_questions(tested))
        planner = make_planner(CASE_PLANNER, tested.opened.plan_cases, tested.domain.open_reader())
        controls = {"any tool": _AnyToolPlanner(planner), "same tool": _SameToolPlanner(planner)}
        rows: list[dict[str, Any]] = []
        for fault in get_args(Fault):
            draws = 1 if fault == "none" else seeds
            for name, mend in SYSTEMS.items():
                system = controls.get(name, planner)
                results = [
                    _run(question, tested.toolbox, system, mend, fault, seed)
                    for question in tracked(f"{fault}, {name}", questions)
                    for seed in range(draws)
                ]
                means = {column: mean([r[column] for r in results]) for column in results[0]}
                rows.append({"fault": fault, "mend": name, "runs": len(results), **means})
    shares = {(row["fault"], row["mend"]): row["answered"] for row in rows}
    settings = {"domain": domain_name, "questions": len(questions), "seeds": seeds}
    figures = {
        f"gain_{fault}_{name.replace(' ', '_')}": shares[fault, name] - shares[fault, "off"]
        for fault in get_args(Fault)
        for name in list(SYSTEMS)[1:]
    }
    return Report("replan", settings, figures, rows, NOTES)


def _questions(tested: TestedDomain) -> Iterator[_Question]:
    """Yield the test queries with a scope in which every step of the gold plan has results."""
    for query in tested.held_out_queries():
        if query.plan.tools == (NO_EVIDENCE.name,):
            continue
        for scope in scope_combinations(tested.domain):
            outcomes = run_plan(tested.toolbox, query, scope)
            if all(outcome.status == "done" for outcome in outcomes):
                evidence = collect_evidence(query.plan, outcomes, tested.toolbox)
                # A step's first result replaces the later ones.
                first_texts = {item.step: item.text for item in reversed(evidence) if item.final}
                yield _Question(query, scope, frozenset(first_texts.values()))
                break


def _run(
    question: _Question, toolbox: Toolbox, planner: Planner, mend: Mend, fault: Fault, seed: int
) -> dict[str, float]:
    """Answer a question with a faulty tool; return the values of the row's columns."""
    record = question.query.record
    planned_tools = planner.plan(record.request(toolbox)).plan.tools
    faulty_name = random.Random(f"{record.id} {seed}").choice(planned_tools)
    calls: list[str] = []
    faulty_toolbox = Toolbox(
        _faulty_tool(tool, calls, fault if tool.name == faulty_name else "none")
        for tool in toolbox
        if tool.name != NO_EVIDENCE.name
    )
    graph = build_graph(faulty_toolbox, planner, limits=Limits(concurrency=1), mend=mend)
    state = graph.invoke(
        {"question": record.query, "context": record.context},
        context=RunContext(scope=question.scope),
    )
    answer = Answer.from_state(state)
    texts = {item["text"] for item in answer.evidence}
    values = {"answered": question.gold_texts <= texts, "some_evidence": bool(texts)}
    return {**values, "calls": len(calls), "replanned": "mended" in answer.planner}


def _faulty_tool(tool: ToolSpec, calls: list[str], fault: Fault) -> ToolSpec:
    """Return a tool with a fault; each call adds the tool's name to ``calls``."""
    past_arguments: list[Mapping[str, Any]] = []

    def run(arguments: Mapping[str, Any], context: CallContext) -> Any:
        calls.append(tool.name)
        if fault == "failure":
            raise ToolError("It does not answer.")
        if fault == "miss":
            # Only calls with the arguments of the first call have no results.
            past_arguments.append(arguments)
            if arguments == past_arguments[0]:
                return []
        assert tool.run is not None
        return tool.run(arguments, context)

    return replace(tool, run=run, run_async=None)
