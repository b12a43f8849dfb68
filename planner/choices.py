"""The choices for a plan: its tools, and the sources of each argument.

A plan built from these choices passes all static checks but those of ranges and a budget.
"""

from __future__ import annotations

from typing import Any

from casewright.errors import PlanError
from casewright.planner.parse import parse_plan
from casewright.planner.plan import ContextRef, ListValue, Literal, QuestionRef, Step
from casewright.planner.request import PlanRequest
from casewright.planner.spans import RUNS
from casewright.tools import Parameter, Source, ToolSpec
from casewright.tools.alias import NAME


def plan_choices(request: PlanRequest) -> dict[str, Any]:
    """Return the choices for a plan of a request, as JSON.

    ``most_steps``; ``words``, for spans: the question's words, each with the text up to the next
    one; and ``tools``: name, description, result fields, and parameters. A parameter's ``alone``,
    and its ``items`` if it takes a list, list the kinds of values: one of ``values``, in the plan
    language; a result field of a ``step``; or the input of a person: a ``text``, a ``span`` of the
    question, a ``number``.
    """
    question = " ".join(request.question.split())
    runs = [*RUNS.finditer(question)]
    ends = [run.start() for run in runs[1:]] + [len(question)]
    return {
        "most_steps": request.max_steps,
        "words": [
            [run[0], question[run.end() : end]] for run, end in zip(runs, ends, strict=False)
        ],
        "tools": [_tool(tool, request) for tool in request.toolbox],
    }


def _tool(tool: ToolSpec, request: PlanRequest) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "results": list(tool.results),
        "parameters": [
            {
                "name": parameter.name,
                "required": parameter.required,
                "alone": _values(parameter, request, parameter.fits),
                "items": _values(parameter, request, lambda value: True)
                if parameter.kind in ("array", "any")
                else None,
            }
            for parameter in tool.parameters
        ],
    }


def _values(parameter: Parameter, request: PlanRequest, fits: Any) -> dict[str, Any]:
    sources, text = parameter.sources, fits("")
    # A lone surrogate cannot be a literal.
    whole = (c for c in parameter.choices if c == c.encode("utf-8", "ignore").decode())
    values: list[Any] = [Literal(choice) for choice in whole if text]
    if Source.QUESTION in sources and text:
        values.append(QuestionRef())
    if Source.CONTEXT in sources:
        known = ((f, value) for f, value in request.context.items() if value is not None)
        values += [ContextRef(f) for f, value in known if NAME.fullmatch(f) and fits(value)]
    if Source.BOOLEAN in sources and fits(True):
        values += [Literal(True), Literal(False)]
    return {
        "values": list(map(str, values)),
        "step": Source.STEP in sources,
        "text": Source.LITERAL in sources and text,
        "span": Source.SPAN in sources and Source.LITERAL not in sources and text,
        "number": Source.NUMBER in sources and fits(0),
    }


def plan_parts(*texts: str) -> list[dict[str, Any]]:
    """Return the steps of the first text that is a plan: tool, and arguments in the plan language.

    A list argument is a list of its items.
    """
    for text in texts:
        try:
            return [_part(step) for step in parse_plan(text).steps]
        except PlanError:
            continue
    return []


def _part(step: Step) -> dict[str, Any]:
    return {
        "tool": step.tool,
        "arguments": {
            name: [*map(str, value.items)] if isinstance(value, ListValue) else str(value)
            for name, value in step.arguments
        },
    }
