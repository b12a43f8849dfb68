"""Plan cases: the problem of a case is a question, and the solution is the question's plan."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from casewright.planner.annotated import AnnotatedQuery
from casewright.planner.plan import Plan, context_fields
from casewright.planner.prompt import PlanExample
from casewright.planner.request import PlanRequest
from casewright.stores import Case, CaseSchema, CaseStore, Encoder, MarginalSelector, text_facet
from casewright.tools import ToolExample

#: Default number of plan cases in a prompt.
EXAMPLE_COUNT = 4
#: Default selection of plan cases. ``lambda_d``, the weight of similarity against diversity, has
#: RAGSys's value. ``lambda_b=1.0`` ignores quality, since packaged plan cases have none.
SELECTION = MarginalSelector(lambda_d=0.75, lambda_b=1.0)


def plan_schema(encoder: Encoder) -> CaseSchema:
    """Return the schema of plan cases; their only facet is the question's text."""
    return CaseSchema(
        "plans",
        # Without ``inter``, a case's question is embedded like a query, since both are questions.
        (text_facet("question", encoder, inter=False),),
        # The text of a case in a prompt.
        support=lambda case: f"Question: {case.problem['question']}\nPlan:\n{case.solution}",
    )


def plan_case(query: AnnotatedQuery) -> Case:
    """Return an annotated query as a case, with the names but no values of the context's fields.

    The case of a follow-up also has the earlier turns. Language models get such a case as an
    example for other follow-ups; planners that learn from single questions skip it.
    """
    turns = query.record.turns()
    fields = sorted(name for name, value in query.record.context.items() if value is not None)
    return Case(
        problem={"question": query.query},
        solution=str(query.plan),
        metadata={
            "key": str(query.record.id),
            "class": query.label,
            "tools": sorted(set(query.plan.tools)),
            # Context fields that the request has, and those of them that the plan needs.
            "context": fields,
            "needs": context_fields(query.plan),
            **({"history": json.dumps(turns, ensure_ascii=False)} if turns else {}),
        },
    )


def plan_store(
    queries: Iterable[AnnotatedQuery], encoder: Encoder, location: str | Path = ":memory:"
) -> CaseStore:
    """Return an open store with a case for each query that adds no tools to its toolbox."""
    store = CaseStore(plan_schema(encoder), location)
    store.add([plan_case(query) for query in queries if not query.record.tools_extra])
    return store


def similar_plans(
    store: CaseStore | None, request: PlanRequest, k: int, selection: MarginalSelector = SELECTION
) -> list[ToolExample]:
    """Return at most k plan cases for a prompt: similar and diverse ones that fit the request."""
    if store is None or not k:
        return []
    # More than k candidates are retrieved, since some may not fit the request.
    candidates = selection.candidates(store, request.question, 4 * k)
    hits = [hit for hit in candidates if _is_usable(hit.case, request)]
    cases = [pick.hit.case for pick in selection.pick(store, hits, k)]
    return [
        PlanExample(
            case.problem["question"],
            str(case.solution),
            tuple(json.loads(case.metadata.get("history", "[]"))),
            tuple(case.metadata.get("context", ())),
        )
        for case in cases
    ]


def _is_usable(case: Case, request: PlanRequest) -> bool:
    """Return True if the request has the tools, the context and the history that a case needs."""
    history_fits = bool(request.history) or "history" not in case.metadata
    tools, fields = case.metadata.get("tools", ()), case.metadata.get("needs", ())
    return history_fits and _has_all(request, tools, fields)


def can_run(plan: Plan, request: PlanRequest) -> bool:
    """Return True if the request has the tools and the context that a plan needs."""
    return _has_all(request, plan.tools, context_fields(plan))


def _has_all(request: PlanRequest, tools: Iterable[str], fields: Iterable[str]) -> bool:
    return all(tool in request.toolbox for tool in tools) and all(
        request.context.get(field) is not None for field in fields
    )
