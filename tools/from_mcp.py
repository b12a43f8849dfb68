"""Converts the tools of MCP servers to ``ToolSpec`` objects, with LangChain's adapters."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from casewright.errors import DependencyError, ToolError, one_line
from casewright.tools.alias import NAME
from casewright.tools.deadline import in_background
from casewright.tools.from_langchain import tool_from_langchain
from casewright.tools.results import parsed_json
from casewright.tools.spec import CallContext, ToolSpec

if TYPE_CHECKING:
    from langchain_mcp_adapters.sessions import Connection
    from mcp.types import Tool

#: The field in which servers wrap lists, texts and numbers, since an MCP result must be an object.
_WRAPPER_FIELD = "result"
#: A server may list its tools in pages; at most this many pages are read.
_MAX_PAGES = 100
#: A server must list its tools within these seconds; some servers install themselves first.
LISTING_SECONDS = 60.0


async def tools_from_mcp(
    connections: Mapping[str, Connection],
    *,
    results: Mapping[str, Iterable[str]] | None = None,
    sources: Mapping[str, Mapping[str, Iterable[str]]] | None = None,
    scope: Iterable[str] = (),
    prefix: bool = False,
) -> list[ToolSpec]:
    """Return the tools of MCP servers; in synchronous code, use ``asyncio.run``.

    Each call of a tool opens and closes a session, so a call may come from any thread or event
    loop, and if a server crashes, only one step fails. A server on stdio is started for every call;
    use HTTP for a server that starts slowly.

    Args:
        connections: The servers by name, as ``MultiServerMCPClient`` takes them: ``{"shop":
            {"transport": "stdio", "command": "python", "args": ["server.py"]}}``.
        results: The fields of each tool's results, by tool name. By default, the fields of the
            tool's output schema; if there are none, ``evidence``, which holds the result's text.
        sources: The allowed sources of arguments, by tool name and parameter name.
        scope: Parameters that identify the user. A plan cannot write them: they get their values
            from the request's scope, and a call fails if the scope lacks one.
        prefix: Put the server's name before the names of its tools, in case two servers have a tool
            of the same name.

    Raises:
        DependencyError: The extra ``mcp`` is not installed.
        ToolError: A server does not answer in time, or ``results``, ``sources`` or ``scope`` name
            an unknown tool or parameter.
    """
    try:
        from langchain_mcp_adapters.tools import convert_mcp_tool_to_langchain_tool
    except ImportError as error:
        raise DependencyError(
            "Tools of MCP servers need LangChain's adapters. pip install 'casewright[mcp]'"
        ) from error
    fields_by_tool, sources_by_tool = dict(results or {}), dict(sources or {})
    scope_parameters = frozenset(scope)
    tools: list[ToolSpec] = []
    parameter_names: set[str] = set()
    for server, connection in connections.items():
        for mcp_tool in await _list_tools(server, connection):
            # Without a session (``None``), each call of the tool opens a session.
            langchain_tool = convert_mcp_tool_to_langchain_tool(
                None, mcp_tool, connection=connection, server_name=server, tool_name_prefix=prefix
            )
            fields = fields_by_tool.pop(langchain_tool.name, None)
            spec = tool_from_langchain(
                langchain_tool,
                results=_result_fields(mcp_tool.outputSchema) if fields is None else fields,
                sources=sources_by_tool.pop(langchain_tool.name, None),
            )
            parameter_names.update(parameter.name for parameter in spec.parameters)
            tools.append(_with_rows_and_scope(spec, scope_parameters))
    if unknown := sorted({*fields_by_tool, *sources_by_tool}):
        raise ToolError(
            f"results or sources name the tools {unknown}, which no server has. There are "
            f"{[spec.name for spec in tools]}."
        )
    # With a misspelt name, plans could write the intended parameter, and so choose the user.
    if unknown := sorted(scope_parameters - parameter_names):
        raise ToolError(
            f"scope names the parameters {unknown}, which no tool has. There are "
            f"{sorted(parameter_names)}."
        )
    return tools


async def _list_tools(server: str, connection: Connection) -> list[Tool]:
    from langchain_mcp_adapters.sessions import create_session

    limit = asyncio.timeout(LISTING_SECONDS)
    try:
        async with limit, create_session(connection) as session:
            await session.initialize()
            tools: list[Tool] = []
            cursor: str | None = None
            for _ in range(_MAX_PAGES):
                page = await session.list_tools(cursor=cursor)
                tools += page.tools
                if not (cursor := page.nextCursor):
                    break
            return tools
    except Exception as error:
        is_late = limit.expired()
        cause = f"no answer in {LISTING_SECONDS:g} seconds" if is_late else one_line(_cause(error))
        raise ToolError(
            f"The MCP server {server!r} does not list its tools: {cause}. Check its command or "
            "address."
        ) from error


def _result_fields(output_schema: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return the result fields that an output schema declares; ``evidence`` if there are none."""
    schema = dict(output_schema or {})
    definitions = schema.get("$defs", {})
    if list(schema.get("properties", {})) == [_WRAPPER_FIELD]:
        schema = schema["properties"][_WRAPPER_FIELD]
        if schema.get("type") == "array":
            schema = schema.get("items", {})
    row_schema = definitions.get(str(schema.get("$ref", "")).rpartition("/")[2], schema)
    fields = tuple(name for name in row_schema.get("properties", {}) if NAME.fullmatch(name))
    return fields or ("evidence",)


def _with_rows_and_scope(spec: ToolSpec, scope: frozenset[str]) -> ToolSpec:
    """Return the tool without the parameters in ``scope``; its new function returns rows.

    The function fills these parameters from the request's scope.
    """
    call = spec.run_async
    assert call is not None
    hidden_names = [parameter.name for parameter in spec.parameters if parameter.name in scope]

    async def run_async(arguments: Mapping[str, Any], context: CallContext) -> Any:
        if missing := [name for name in hidden_names if name not in context.scope]:
            raise ToolError(
                f"Tool {spec.name!r} needs the user's {', '.join(missing)}. Give it in "
                "the run's context: RunContext(scope={…})."
            )
        scope_arguments = {name: context.scope[name] for name in hidden_names}
        try:
            return_value = await in_background(call({**arguments, **scope_arguments}, context))
        except ExceptionGroup as error:
            # A session's task group wraps errors in a group, whose message hides the cause.
            raise _cause(error) from error
        return _rows(spec, return_value)

    visible_parameters = tuple(p for p in spec.parameters if p.name not in hidden_names)
    return replace(spec, parameters=visible_parameters, run=None, run_async=run_async)


def _rows(spec: ToolSpec, return_value: Any) -> Any:
    """Return a call's value in a form that the function ``rows`` of ``tools.results`` takes."""
    if isinstance(return_value, Mapping) and "structured_content" in return_value:
        value = return_value["structured_content"]
        is_wrapped = isinstance(value, Mapping) and list(value) == [_WRAPPER_FIELD]
        return value[_WRAPPER_FIELD] if is_wrapped and _WRAPPER_FIELD not in spec.results else value
    if not isinstance(return_value, list):
        return return_value
    texts = [block["text"] for block in return_value if block.get("type") == "text"]
    if return_value and not texts:
        block_types = sorted({str(block.get("type")) for block in return_value})
        raise ToolError(
            f"Tool {spec.name!r} returned no text but {', '.join(block_types)}, which no plan can "
            "use. Leave the tool out of the toolbox."
        )
    if len(spec.results) == 1:
        return "\n".join(texts)
    values = [parsed_json(spec, text, "Declare only one field, for the text.") for text in texts]
    return [row for value in values for row in (value if isinstance(value, list) else [value])]


def _cause(error: Exception) -> Exception:
    """Return the error in nested groups of one error each; return any other error unchanged."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
