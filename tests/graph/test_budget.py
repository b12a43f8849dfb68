"""No run calls more than its budget, whatever its planner writes and however its tools fail."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, RetryPolicy, interrupt

from casewright.errors import InputError, PlanError, ToolError
from casewright.graph import Answer, Limits, RunContext
from casewright.graph.random_plans import MAX_NEEDS, random_dag
from casewright.planner import Plan, Step, parse_plan
from casewright.planner.price import price_plan
from casewright.tools import CallContext, Toolbox, ToolSpec, tool_from_function
from tests.graph.helpers import QUESTION, Ask, Given, graph_of, statuses, tool

CONFIG: Any = {"configurable": {"thread_id": "one"}}
TAKES = ("seconds", *(f"in{i}" for i in range(MAX_NEEDS)))
DECLARED = {
    "work": {"latency": 0.05, "cost": 0.1, "tokens": 7},
    "other": {"latency": 0.4, "cost": 0.03, "tokens": 90},
    "free": {},
}
AT_ONCE = RetryPolicy(max_attempts=3, initial_interval=0.0)


def random_plan(rng: random.Random) -> Plan:
    """A plan of ``random_plans`` whose steps call any of the three tools."""
    steps = random_dag(rng, shortest=0.0, longest=0.0, max_steps=8).plan().steps
    return Plan(tuple(Step(rng.choice(list(DECLARED)), step.arguments) for step in steps))


def flaky_tools(rng: random.Random, calls: Counter[str]) -> list[ToolSpec]:
    def run(given: Given, context: CallContext) -> str:
        calls[context.step.partition(" ")[0]] += 1
        if rng.random() < 0.4:
            raise OSError("try again")
        return "found"

    def counting(name: str) -> ToolSpec:
        def counted(given: Given, context: CallContext) -> str:
            calls[name] += 1
            return run(given, context)

        made = tool(name, counted, takes=TAKES)
        return ToolSpec(
            name, "A test's.", made.parameters, ("value",), run=counted, **DECLARED[name]
        )

    def plain(given: Given, context: CallContext) -> str:
        return run(given, context)

    del plain
    return [counting(name) for name in DECLARED]


BUDGETS = st.fixed_dictionaries(
    {},
    optional={
        "calls": st.integers(1, 10),
        "seconds": st.floats(0.01, 2.0),
        "cost": st.floats(0.01, 0.8),
        "tokens": st.integers(1, 400),
        "tool_calls": st.dictionaries(st.sampled_from(list(DECLARED)), st.integers(0, 3)),
    },
)
