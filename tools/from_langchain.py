"""Converts LangChain tools to tools of Casewright."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from casewright.errors import ToolError
from casewright.tools.alias import alias
from casewright.tools.parameter import parameters_of
from casewright.tools.results import plain
from casewright.tools.spec import CallContext, ToolExample, ToolSpec

if TYPE_CHECKING:
    from langchain_core.messages import ToolMessage
    from langchain_core.runnables import RunnableConfig
    from langchain_core.tools import BaseTool


def tool_from_langchain(
    tool: BaseTool,
    *,
    results: Iterable[str] = ("evidence",),
    sources: Mapping[str, Iterable[str]] | None = None,
    example: ToolExample | None = None,
) -> ToolSpec:
    """Return the tool of a LangChain ``BaseTool``.

    Arguments that the tool hides from the model (``InjectedToolArg``) are filled by name from the
    request's scope. If the tool returns an error to the model as text, the step fails.

    Args:
        tool: A LangChain tool, with a description and an argument schema.
        results: The fields of each result; for several fields, the tool must return mappings or
            JSON text.
        sources: As for ``tool_from_function``.
        example: As for ``tool_from_function``.

    Raises:
        ToolError: ``sources`` names an unknown parameter.
    """
    schema, full_schema = _schemas(tool)
    tool = _with_plain_results(tool)
    properties: Mapping[str, Any] = schema.get("properties", {})
    required = schema.get("required", ())
    parameters = parameters_of(tool.name, properties, required, sources, schema.get("$defs"))
    hidden_names = set(full_schema.get("properties", {})) - set(properties)

    def tool_call(arguments: Mapping[str, Any], context: CallContext) -> dict[str, Any]:
        injected = {name: context.scope[name] for name in hidden_names if name in context.scope}
        return {
            "name": tool.name,
            "args": {**arguments, **injected},
            "id": context.key or "call",
            "type": "tool_call",
        }

    def config(context: CallContext) -> RunnableConfig:
        identifiers = {"casewright_key": context.key, "casewright_step": context.step}
        return {"metadata": identifiers, "configurable": identifiers}

    def run(arguments: Mapping[str, Any], context: CallContext) -> Any:
        message = tool.invoke(tool_call(arguments, context), config(context))
        return _returned_value(tool.name, message)

    async def run_async(arguments: Mapping[str, Any], context: CallContext) -> Any:
        message = await tool.ainvoke(tool_call(arguments, context), config(context))
        return _returned_value(tool.name, message)

    has_async = _has_async(tool)
    # Only a ``Tool`` or ``StructuredTool`` can lack a blocking function: its ``func`` is then None.
    has_sync = not has_async or not hasattr(tool, "func") or tool.func is not None
    return ToolSpec(
        name=alias(tool.name),
        description=tool.description,
        parameters=parameters,
        results=tuple(results),
        example=example,
        run=run if has_sync else None,
        run_async=run_async if has_async else None,
    )


def _schemas(tool: BaseTool) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the argument schema that a model sees, and the schema with the injected arguments."""
    from langchain_core.tools import Tool

    if isinstance(tool, Tool) and tool.args_schema is None:
        # A ``Tool`` takes one text; its inferred schema would list the parameters of Tool._run.
        visible = {"properties": tool.args, "required": list(tool.args)}
        return visible, visible
    # Without ``args_schema``, LangChain infers the schema from _run, with injected arguments.
    full_model: Any = tool.get_input_schema() if tool.args_schema is None else tool.args_schema
    models: tuple[Any, Any] = tool.tool_call_schema, full_model
    visible, full = (m if isinstance(m, dict) else m.model_json_schema() for m in models)
    return visible, full


def _has_async(tool: BaseTool) -> bool:
    """Return True if the tool has an async function of its own, not LangChain's default."""
    from langchain_core.tools import BaseTool, StructuredTool, Tool

    if isinstance(tool, (StructuredTool, Tool)):
        return tool.coroutine is not None
    return type(tool)._arun is not BaseTool._arun


def _with_plain_results(tool: BaseTool) -> BaseTool:
    """Return the tool with functions that return dates and similar values as texts.

    LangChain would convert a result with such values by ``str``, not to JSON.
    """
    from langchain_core.tools import StructuredTool, Tool

    if not isinstance(tool, (StructuredTool, Tool)) or tool.response_format != "content":
        return tool
    functions = {field: getattr(tool, field) for field in ("func", "coroutine")}
    changes = {field: _plain_function(f, field) for field, f in functions.items() if f is not None}
    return tool.model_copy(update=changes)


def _plain_function(function: Callable[..., Any], tool_field: str) -> Callable[..., Any]:
    # ``wraps`` keeps the signature: LangChain passes callbacks and config only if it names them.
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return plain(function(*args, **kwargs))

    @functools.wraps(function)
    async def call_async(*args: Any, **kwargs: Any) -> Any:
        return plain(await function(*args, **kwargs))

    return call_async if tool_field == "coroutine" else call


def _returned_value(name: str, message: ToolMessage | Any) -> Any:
    """Return a message's artifact, or else its content; raise ``ToolError`` for an error."""
    if getattr(message, "status", "success") == "error":
        raise ToolError(f"Tool {name!r} answered with an error: {str(message.content)[:300]}")
    if (artifact := getattr(message, "artifact", None)) is not None:
        return artifact
    content = getattr(message, "content", message)
    # These texts are empty results, which LangChain has converted to JSON.
    return None if content in ("null", "{}", "[]") else content
