"""Converts typed functions to tools."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, get_type_hints, overload

from pydantic import TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError

from casewright.errors import ToolError
from casewright.tools import process as processes
from casewright.tools.alias import alias
from casewright.tools.parameter import parameters_of
from casewright.tools.spec import CallContext, Run, RunAsync, Tenant, ToolExample, ToolSpec

#: Types of parameters that the executor sets, each with a function that returns the value.
_INJECTED: tuple[tuple[Any, Callable[[CallContext], Any]], ...] = (
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
    latency: float | None = None,
    cost: float | None = None,
    tokens: int | None = None,
    approval: bool = False,
    finds: str = "",
) -> ToolSpec:
    """Return the tool of a typed function, which may be async.

    The executor passes the call's context to a parameter of the type ``CallContext``, and the
    request's tenant to a parameter of the type ``Tenant``; plans do not see these parameters.

    The function must return values that JSON can represent. Dates and times become ISO texts;
    ``Decimal``, ``UUID`` and ``Path`` become ``str``; members of an ``Enum`` become their values,
    also in lists and mappings. Sets, other objects and NaN fail the step.

    Args:
        function: Called with keyword arguments; ``casewright.tools.rows`` turns its return value
            into rows.
        name: The tool's name; by default, the function's name.
        description: The description for the planner; by default, the docstring's first paragraph.
        results: The fields of each result.
        sources: The allowed sources of each parameter's argument, by the parameter's name.
        example: A question that the tool helps to answer, with the plan.
        process: Call the function in its own process, which is killed when the call is cancelled or
            exceeds its time limit; see ``casewright.tools.process``.
        latency: See ``ToolSpec``, also for ``cost``, ``tokens``, ``approval`` and ``finds``.

    Raises:
        ToolError: A parameter has a type that JSON cannot represent, ``sources`` names an unknown
            parameter, or the function of a ``process`` tool cannot be imported.
    """
    tool_name: str = name or str(getattr(function, "__name__", "tool"))
    hints = get_type_hints(function)
    result_fields = tuple(results)
    schemas: dict[str, dict[str, Any]] = {}
    required: set[str] = set()
    injectors: dict[str, Callable[[CallContext], Any]] = {}
    for parameter in inspect.signature(function).parameters.values():
        type_hint = hints.get(parameter.name, Any)
        # Compare by identity: not every type has a hash.
        inject = next((value_of for type_, value_of in _INJECTED if type_hint is type_), None)
        if inject is not None:
            injectors[parameter.name] = inject
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ToolError(
                f"Tool {tool_name!r} takes *{parameter.name}. Name each of its parameters."
            )
        try:
            schemas[parameter.name] = TypeAdapter(type_hint).json_schema()
        except (PydanticSchemaGenerationError, PydanticInvalidForJsonSchema) as error:
            raise ToolError(
                f"Tool {tool_name!r}: parameter {parameter.name!r} has a type that JSON cannot "
                "represent. Annotate it with str, int, float, bool, a Literal or a list."
            ) from error
        if parameter.default is parameter.empty:
            required.add(parameter.name)

    def keyword_arguments(arguments: Mapping[str, Any], context: CallContext) -> dict[str, Any]:
        return {**arguments, **{name: inject(context) for name, inject in injectors.items()}}

    run: Run | None = None
    run_async: RunAsync | None = None
    if process and not processes.is_tool_process:
        run_async = processes.in_process(tool_name, function, result_fields)
    elif inspect.iscoroutinefunction(function):

        async def call_async(arguments: Mapping[str, Any], context: CallContext) -> Any:
            return await function(**keyword_arguments(arguments, context))

        run_async = call_async
    else:

        def run(arguments: Mapping[str, Any], context: CallContext) -> Any:
            return function(**keyword_arguments(arguments, context))

    paragraph = (inspect.getdoc(function) or tool_name).split("\n\n")[0].replace("\n", " ")
    return ToolSpec(
        name=alias(tool_name),
        description=description or paragraph,
        parameters=parameters_of(tool_name, schemas, required, sources),
        results=result_fields,
        example=example,
        run=run,
        run_async=run_async,
        latency=latency,
        cost=cost,
        tokens=tokens,
        approval=approval,
        finds=finds,
    )


@overload
def tool(function: Callable[..., Any], /) -> ToolSpec: ...


@overload
def tool(**settings: Any) -> Callable[[Callable[..., Any]], ToolSpec]: ...


def tool(function: Callable[..., Any] | None = None, /, **settings: Any) -> Any:
    """Return the tool of a decorated function: write ``@tool`` or ``@tool(results=(…))``.

    The ``settings`` are the keyword arguments of ``tool_from_function``; see there for the errors.
    """
    if function is not None:
        return tool_from_function(function)
    return lambda decorated: tool_from_function(decorated, **settings)
