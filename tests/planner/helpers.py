"""Helpers of the planner tests: a small shop's tools and plan cases for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from casewright.errors import PlanError
from casewright.planner import AnnotatedQuery, CasePlanner, parse_plan, plan_store, violations
from casewright.tools import Parameter, Source, Toolbox, ToolExample, ToolSpec
from tests.support.encoders import HashingEncoder


def parameter(name: str, *sources: str, **more: Any) -> Parameter:
    return Parameter(name, sources=frozenset(map(Source, sources)), **more)


FIND = ToolSpec(
    "find",
    "Finds products.",
    (parameter("query", "span", "literal", "question", kind="string"),),
    ("item_id", "title"),
    ToolExample("I need a lamp", 's1 = find(query="lamp")'),
)
OWN = ToolSpec(
    "own",
    "Finds what the customer bought.",
    (parameter("query", "span", "question", kind="string"),),
    ("item_id", "title"),
)
FACT = ToolSpec(
    "fact",
    "A fact about one product.",
    (
        parameter("item_id", "context", "step"),
        parameter("query", "question", "literal", kind="string"),
    ),
)
DESK = ToolSpec(
    "desk", "Policies and returns.", (parameter("query", "question", "literal", kind="string"),)
)
SHOP = Toolbox([FIND, OWN, FACT, DESK])

OWN_PLAN = 's1 = own(query="{}")\ns2 = fact(item_id=s1.item_id, query=question)'
DESK_PLAN = "s1 = desk(query=question)"
PAGE_PLAN = "s1 = fact(item_id=context.product_id, query=question)"
ROWS: list[tuple[str, str, dict[str, Any]]] = [
    ("do you sell camping stoves", 's1 = find(query="camping stoves")', {}),
    ("do you sell wool socks", 's1 = find(query="wool socks")', {}),
    ("do you sell garden chairs", 's1 = find(query="garden chairs")', {}),
    ("how heavy is my old tent", OWN_PLAN.format("old tent"), {}),
    ("how loud is my radio", OWN_PLAN.format("radio"), {}),
    ("how bright is my torch", OWN_PLAN.format("torch"), {}),
    ("can I return something after a month", DESK_PLAN, {}),
    ("can I get my money back", DESK_PLAN, {}),
    ("can I return opened boxes", DESK_PLAN, {}),
    ("is it waterproof", PAGE_PLAN, {"product_id": "p1"}),
    ("is it heavy", PAGE_PLAN, {"product_id": "p2"}),
    ("is it made of wood", PAGE_PLAN, {"product_id": "p3"}),
    ("hello there", "s1 = no_evidence()", {}),
    ("hello and good morning", "s1 = no_evidence()", {}),
]


def make_queries(rows: Iterable[tuple[str, str, dict[str, Any]]] = ROWS) -> list[AnnotatedQuery]:
    return [
        AnnotatedQuery.read({"id": f"q{i}", "query": query, "plan": plan, "context": context})
        for i, (query, plan, context) in enumerate(rows)
    ]


def case_planner(queries: Sequence[AnnotatedQuery] | None = None) -> CasePlanner:
    cases = make_queries() if queries is None else queries
    return CasePlanner(plan_store(cases, HashingEncoder(256)))


def errors_of(
    text: str,
    toolbox: Toolbox = SHOP,
    question: str = "Do you sell red wool socks?",
    context: dict[str, Any] | None = None,
    **more: Any,
) -> list[PlanError]:
    """Return every violation of a plan in its text form."""
    plan = parse_plan(text)
    return list(violations(plan, toolbox, question=question, context=context or {}, **more))
