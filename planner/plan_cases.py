"""Plans that worked are cases: a question, where it was asked, and the plan as solution."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from casewright.planner.annotated import AnnotatedQuery
from casewright.planner.plan import Plan, context_fields
from casewright.planner.prompt import PlanExample
from casewright.planner.request import PlanRequest
from casewright.stores import (
    Case,
    CaseSchema,
    CaseStore,
    Encoder,
    Hit,
    MarginalSelector,
    text_facet,
)
from casewright.tools import ToolExample

#: Plan cases shown in a prompt, where nobody says otherwise.
EXAMPLES = 4
#: How they are picked where nobody says otherwise: by RAGSys's share of diversity, without its
#: quality bias: no plan case that ships has a quality. Who measured one gives another selection.
SELECTION = MarginalSelector(lambda_d=0.75, lambda_b=1.0)


def plan_schema(encoder: Encoder) -> CaseSchema:
    """Return the schema of plan cases: one facet, the question's text."""
    return CaseSchema(
        "plans",
        # Questions on both sides: CBR-RAG's f, without a cue.
        (text_facet("question", encoder, inter=False),),
        support=lambda case: f"Question: {case.problem['question']}\nPlan:\n{case.solution}",
    )


def plan_case(query: AnnotatedQuery) -> Case:
    """Turn an annotated query into a case; its context is kept by the names of its fields.

    The case of a follow-up keeps the turns before it. It is shown to language models beside other
    follow-ups; planners that learn from questions that stand alone pass it over.
    """
    turns = query.record.turns()
    known = sorted(name for name, value in query.record.context.items() if value is not None)
    return Case(
        problem={"question": query.query},
        solution=str(query.plan),
        metadata={
            "key": str(query.record.id),
            "class": query.label,
            "tools": sorted(set(query.plan.tools)),
            "context": known,
            "needs": context_fields(query.plan),
            **({"history": json.dumps(turns, ensure_ascii=False)} if turns else {}),
        },
    )


def plan_store(
    queries: Iterable[AnnotatedQuery], encoder: Encoder, location: str | Path = ":memory:"
) -> CaseStore:
    """Open a store of plan cases and add these queries, but for those with tools of their own."""
    store = CaseStore(plan_schema(encoder), location)
    store.add([plan_case(query) for query in queries if not query.record.tools_extra])
    return store


def similar_plans(
    store: CaseStore,
    request: PlanRequest,
    k: int,
    selection: MarginalSelector = SELECTION,
) -> list[ToolExample]:
    """Pick k plan cases for a prompt by MMR, of plans that can be run here."""
    if not k:
        return []
    candidates = selection.candidates(store, request.question, 4 * k)
    hits = [hit for hit in candidates if usable(hit, request)]
    picks = selection.pick(store, hits, k)
    return [
        PlanExample(
            pick.hit.case.problem["question"],
            str(pick.hit.case.solution),
            tuple(json.loads(pick.hit.case.metadata.get("history", "[]"))),
            tuple(pick.hit.case.metadata.get("context", ())),
        )
        for pick in picks
    ]


def usable(hit: Hit, request: PlanRequest) -> bool:
    """Return whether the request has the tools, the context and the history that a case needs."""
    tools: Sequence[str] = hit.case.metadata.get("tools", ())
    fields: Sequence[str] = hit.case.metadata.get("needs", ())
    leans = "history" in hit.case.metadata
    return (not leans or bool(request.history)) and _has(request, tools, fields)


def runnable(plan: Plan, request: PlanRequest) -> bool:
    """Return whether the request has the tools and the context that a plan needs."""
    return _has(request, plan.tools, context_fields(plan))


def _has(request: PlanRequest, tools: Iterable[str], fields: Iterable[str]) -> bool:
    return all(tool in request.toolbox for tool in tools) and all(
        request.context.get(field) is not None for field in fields
    )
