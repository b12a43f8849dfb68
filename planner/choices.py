"""Lists the choices from which a person can compose a plan: tools, and possible arguments.

A plan of these choices passes all static checks. A tool may still refuse an argument, for example a
number that is too large, and the plan may exceed the budget.
"""

from __future__ import annotations

from typing import Any

from casewright.errors import PlanError
from casewright.planner.parse import parse_plan
from casewright.planner.plan import ContextRef, ListValue, Literal, QuestionRef, Step
from casewright.planner.request import PlanRequest
from casewright.planner.spans import WORD_RUNS
from casewright.tools import Parameter, Source, ToolSpec
from casewright.tools.alias import NAME


def plan_choices(request: PlanRequest) -> dict[str, Any]:
    """Return the choices for a plan of a request, as JSON.

    ``most_steps`` is the maximum number of steps. ``words`` are the question's words, for spans,
    each with the text up to the next word. ``tools`` have name, description, result fields and
    parameters. A parameter has choices for a single value (``alone``) and for an item of a list
    (``items``; null if the parameter takes no list). Both have ``values``, texts in the plan
    language, and four flags, which allow other values: ``step`` a result field of an earlier step,
    ``text`` any text, ``span`` a span of the question, ``number`` any number.
    """
    question = " ".join(request.question.split())
    matches = [*WORD_RUNS.finditer(question)]
    ends = [match.start() for match in matches[1:]] + [len(question)]
    return {
        "most_steps": request.max_steps,
        "words": [[m[0], question[m.end() : end]] for m, end in zip(matches, ends, strict=False)],
        "tools": [_tool_record(tool, request) for tool in request.toolbox],
    }


def _tool_record(tool: ToolSpec, request: PlanRequest) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "results": list(tool.results),
        "parameters": [
            {
                "name": parameter.name,
                "required": parameter.required,
                "alone": _choices(parameter, request, parameter.fits),
                "items": _choices(parameter, request, lambda value: True)
                if parameter.kind in ("array", "any")
                else None,
            }
            for parameter in tool.parameters
        ],
    }


def _choices(parameter: Parameter, request: PlanRequest, accepts: Any) -> dict[str, Any]:
    """Return a parameter's choices, but only those whose values ``accepts`` admits."""
    sources, takes_text = parameter.sources, accepts("")
    # A choice with a lone surrogate cannot be a literal.
    choices = (c for c in parameter.choices if c == c.encode("utf-8", "ignore").decode())
    values: list[Any] = [Literal(choice) for choice in choices if takes_text]
    if Source.QUESTION in sources and takes_text:
        values.append(QuestionRef())
    if Source.CONTEXT in sources:
        # A plan can refer only to fields with an identifier as name.
        fields = ((f, value) for f, value in request.context.items() if value is not None)
        values += [ContextRef(f) for f, value in fields if NAME.fullmatch(f) and accepts(value)]
    if Source.BOOLEAN in sources and accepts(True):
        values += [Literal(True), Literal(False)]
    return {
        "values": list(map(str, values)),
        "step": Source.STEP in sources,
        "text": Source.LITERAL in sources and takes_text,
        "span": Source.SPAN in sources and Source.LITERAL not in sources and takes_text,
        "number": Source.NUMBER in sources and accepts(0),
    }


def editable_steps(*texts: str) -> list[dict[str, Any]]:
    """Return the steps of the first text that is a plan, as JSON; empty if no text is a plan.

    In ``arguments``, a single value is a text in the plan language; a list is a list of such texts.
    """
    for text in texts:
        try:
            return [_step_record(step) for step in parse_plan(text).steps]
        except PlanError:
            continue
    return []


def _step_record(step: Step) -> dict[str, Any]:
    return {
        "tool": step.tool,
        "arguments": {
            name: [*map(str, value.items)] if isinstance(value, ListValue) else str(value)
            for name, value in step.arguments
        },
    }
