"""A plain typed function becomes a tool."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, get_type_hints

from pydantic import TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError

from casewright.errors import ToolError
from casewright.tools.alias import alias
from casewright.tools.parameter import parameter_from_json_schema
from casewright.tools.spec import CallContext, Run, RunAsync, ToolExample, ToolSpec


def tool_from_function(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    results: Iterable[str] = ("evidence",),
    sources: Mapping[str, Iterable[str]] | None = None,
    example: ToolExample | None = None,
) -> ToolSpec:
    """Make a tool of a typed function, plain or async.

    A parameter annotated as ``CallContext`` is filled by the executor and hidden from plans.

    It returns what JSON can hold; besides, ``date``, ``datetime`` and ``time`` become their ISO
    text, ``Decimal``, ``UUID`` and ``Path`` their ``str``, and a member of an ``Enum`` its value,
    in lists and mappings too. Sets, other objects and NaN fail the step.

    Args:
        function: Called with keyword arguments; returns rows, see ``casewright.tools.rows``.
        name: The tool's name; the function's by default.
        description: For the planner; the docstring's first paragraph by default.
        results: The fields of its results.
        sources: Parameter name to where its argument may come from.
        example: A question that it helps to answer, with the plan.

    Raises:
        ToolError: A parameter has no type that JSON can hold, or ``sources`` names no parameter.
    """
    own: str = name or str(getattr(function, "__name__", "tool"))
    hints = get_type_hints(function)
    declared = dict(sources or {})
    parameters, injected = [], None
    for parameter in inspect.signature(function).parameters.values():
        if hints.get(parameter.name) is CallContext:
            injected = parameter.name
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ToolError(f"Tool {own!r} takes *{parameter.name}. Name each of its parameters.")
        try:
            schema = TypeAdapter(hints.get(parameter.name, Any)).json_schema()
        except (PydanticSchemaGenerationError, PydanticInvalidForJsonSchema) as error:
            raise ToolError(
                f"Tool {own!r}: parameter {parameter.name!r} has a type that JSON cannot hold. "
                "Annotate it with str, int, float, bool, a Literal or a list."
            ) from error
        parameters.append(
            parameter_from_json_schema(
                parameter.name,
                schema,
                required=parameter.default is parameter.empty,
                sources=declared.pop(parameter.name, None),
                definitions=schema.get("$defs"),
            )
        )
    if declared:
        raise ToolError(f"Tool {own!r} has no parameter {sorted(declared)}; sources names it.")

    def arguments(given: Mapping[str, Any], context: CallContext) -> dict[str, Any]:
        return {**given, injected: context} if injected else dict(given)

    run: Run | None = None
    run_async: RunAsync | None = None
    if inspect.iscoroutinefunction(function):

        async def awaited(given: Mapping[str, Any], context: CallContext) -> Any:
            return await function(**arguments(given, context))

        run_async = awaited
    else:

        def run(given: Mapping[str, Any], context: CallContext) -> Any:
            return function(**arguments(given, context))

    paragraph = (inspect.getdoc(function) or own).split("\n\n")[0].replace("\n", " ")
    return ToolSpec(
        name=alias(own),
        description=description or paragraph,
        parameters=tuple(parameters),
        results=tuple(results),
        example=example,
        run=run,
        run_async=run_async,
    )
