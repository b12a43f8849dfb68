"""A plain typed function becomes a tool."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, get_type_hints

from pydantic import TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError

from casewright.errors import ToolError
from casewright.tools import process as processes
from casewright.tools.alias import alias
from casewright.tools.parameter import parameter_from_json_schema
from casewright.tools.spec import CallContext, Run, RunAsync, Tenant, ToolExample, ToolSpec

#: Types of parameters that no plan can write, and what they are filled with.
_FILLED: tuple[tuple[Any, Callable[[CallContext], Any]], ...] = (
    (CallContext, lambda context: context),
    (Tenant, lambda context: context.tenant),
)


def tool_from_function(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    results: Iterable[str] = ("evidence",),
    sources: Mapping[str, Iterable[str]] | None = None,
    example: ToolExample | None = None,
    process: bool = False,
) -> ToolSpec:
    """Make a tool of a typed function, plain or async.

    A parameter annotated as ``CallContext`` is filled by the executor and hidden from plans; so is
    one annotated as ``Tenant``, with whose request it is.

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
        process: Call it in a process of its own, which is killed where the call is out of time or
            nobody waits for it any more; see ``casewright.tools.process``.

    Raises:
        ToolError: A parameter has no type that JSON can hold, ``sources`` names no parameter, or
            another process cannot import the function.
    """
    own: str = name or str(getattr(function, "__name__", "tool"))
    hints = get_type_hints(function)
    declared, fields = dict(sources or {}), tuple(results)
    parameters = []
    injected: dict[str, Callable[[CallContext], Any]] = {}
    for parameter in inspect.signature(function).parameters.values():
        # By identity: not every type has a hash.
        fill = next((how for kind, how in _FILLED if hints.get(parameter.name) is kind), None)
        if fill is not None:
            injected[parameter.name] = fill
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
        return {**given, **{name: fill(context) for name, fill in injected.items()}}

    run: Run | None = None
    run_async: RunAsync | None = None
    if process and not processes.is_child:
        run_async = processes.in_process(own, function, fields)
    elif inspect.iscoroutinefunction(function):

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
        results=fields,
        example=example,
        run=run,
        run_async=run_async,
    )
