"""The prompt's form as a hash: a model is served with the prompt that it was trained with."""

from __future__ import annotations

import hashlib
from functools import cache

from casewright.planner.prompt import render_prompt
from casewright.planner.request import PlanRequest
from casewright.tools import Parameter, Source, Toolbox, ToolExample, ToolSpec


@cache
def prompt_hash() -> str:
    """Return a hash that changes when the prompt's wording, order or layout does.

    It is taken of the rendered prompt of one request that has every part.
    """
    sources = frozenset({Source.SPAN, Source.STEP, Source.CONTEXT})
    tool = ToolSpec(
        name="look_up",
        description="Finds things.",
        parameters=(
            Parameter("query", "what to find", "string", sources),
            Parameter("kind", "of what kind", choices=("new", "used"), required=False),
        ),
        results=("thing_id", "evidence"),
        example=ToolExample("a thing", 's1 = look_up(query="thing")'),
    )
    request = PlanRequest(
        "what is it",
        Toolbox([tool]),
        {"page": "thing", "absent": None, "number": 7},
        [{"question": "is there one", "answer": "yes"}],
    )
    prompt = render_prompt(request, [ToolExample("another", "s1 = look_up(query=question)")])
    return hashlib.sha256(str(prompt).encode()).hexdigest()[:16]
