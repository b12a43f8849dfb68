"""Tools of MCP servers become tools of Casewright, through LangChain's adapters."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from casewright.errors import DependencyError, ToolError, told
from casewright.tools.alias import NAME
from casewright.tools.background import in_background
from casewright.tools.from_langchain import tool_from_langchain
from casewright.tools.spec import CallContext, RunAsync, ToolSpec

if TYPE_CHECKING:
    from langchain_mcp_adapters.sessions import Connection
    from mcp import ClientSession
    from mcp.types import Tool

#: Where a server's library puts what is no object of its own: a list, a text, a number.
_WRAPPED = "result"
#: Pages of a server's list of tools that are read.
_PAGES = 100
#: A server that has not said its tools by then never does; some fetch themselves first.
LISTING_SECONDS = 60.0


async def tools_from_mcp(
    connections: Mapping[str, Connection],
    *,
    results: Mapping[str, Iterable[str]] | None = None,
    sources: Mapping[str, Mapping[str, Iterable[str]]] | None = None,
    scope: Iterable[str] = (),
    prefix: bool = False,
) -> list[ToolSpec]:
    """Make tools of all that MCP servers offer; ``asyncio.run`` waits for it where nothing awaits.

    Each call opens a session of its own and closes it: it may come from any thread or event loop,
    and a server that died fails one step. A server on stdio is started for every call; one that
    is slow to start is better reached by HTTP.

    Args:
        connections: The servers by name, as ``MultiServerMCPClient`` takes them: ``{"shop":
            {"transport": "stdio", "command": "python", "args": ["server.py"]}}``.
        results: Tool name to the fields of its results. By default those of the tool's output
            schema, else ``evidence``, its text.
        sources: Tool name to parameter name to where its argument may come from.
        scope: Parameters that say who asks. No plan writes them: whatever tool has one is given
            the request's value from its scope, and fails without it.
        prefix: Put the server's name before each tool's, where two servers have one of a name.

    Raises:
        DependencyError: The extra ``mcp`` is not installed.
        ToolError: A server does not answer, or not in time; ``results``, ``sources`` or ``scope``
            name a tool or parameter that is not there.
    """
    try:
        from langchain_mcp_adapters.tools import convert_mcp_tool_to_langchain_tool
    except ImportError as error:
        raise DependencyError(
            "Tools of MCP servers need LangChain's adapters. pip install 'casewright[mcp]'"
        ) from error
    declared, origins, bound = dict(results or {}), dict(sources or {}), frozenset(scope)
    made: list[ToolSpec] = []
    named: set[str] = set()
    for server, connection in connections.items():
        for tool in await _listed(server, connection):
            adapted = convert_mcp_tool_to_langchain_tool(
                None, tool, connection=connection, server_name=server, tool_name_prefix=prefix
            )
            fields = declared.pop(adapted.name, None)
            spec = tool_from_langchain(
                adapted,
                results=_fields(tool.outputSchema) if fields is None else fields,
                sources=origins.pop(adapted.name, None),
            )
            named.update(parameter.name for parameter in spec.parameters)
            made.append(_bound(_read(spec), bound))
    if unknown := sorted({*declared, *origins}):
        raise ToolError(
            f"results or sources name the tools {unknown}, which no server has. There are "
            f"{[spec.name for spec in made]}."
        )
    # Let pass, a misspelt one would leave it to the plan to say who asks.
    if unknown := sorted(bound - named):
        raise ToolError(
            f"scope names the parameters {unknown}, which no tool has. They have {sorted(named)}."
        )
    return made


async def _listed(server: str, connection: Connection) -> list[Tool]:
    from langchain_mcp_adapters.sessions import create_session

    limit = asyncio.timeout(LISTING_SECONDS)
    try:
        async with limit, create_session(connection) as session:
            await session.initialize()
            return await _all_pages(session)
    except Exception as error:
        late = f"no answer in {LISTING_SECONDS:g} seconds"
        raise ToolError(
            f"The MCP server {server!r} does not say which tools it has: "
            f"{late if limit.expired() else told(_cause(error))}. Check its command or address."
        ) from error


async def _all_pages(session: ClientSession) -> list[Tool]:
    tools: list[Tool] = []
    cursor: str | None = None
    for _ in range(_PAGES):
        page = await session.list_tools(cursor=cursor)
        tools += page.tools
        if not (cursor := page.nextCursor):
            break
    return tools


def _fields(schema: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return the fields of the rows that a tool's output schema tells of."""
    row = dict(schema or {})
    known = row.get("$defs", {})
    if list(row.get("properties", {})) == [_WRAPPED]:
        row = row["properties"][_WRAPPED]
        row = row.get("items", {}) if row.get("type") == "array" else row
    row = known.get(str(row.get("$ref", "")).rpartition("/")[2], row)
    return tuple(name for name in row.get("properties", {}) if NAME.fullmatch(name)) or (
        "evidence",
    )


def _read(spec: ToolSpec) -> ToolSpec:
    """Return the tool with results that are rows: a server's are structured, or blocks."""
    called = spec.run_async
    assert called is not None

    async def run_async(given: Mapping[str, Any], context: CallContext) -> Any:
        try:
            returned = await in_background(called(given, context))
        except ExceptionGroup as error:
            # A session's task group wraps what went wrong in a group, which names nothing.
            raise _cause(error) from error
        return _rows(spec, returned)

    return replace(spec, run=None, run_async=run_async)


def _rows(spec: ToolSpec, returned: Any) -> Any:
    if isinstance(returned, Mapping) and "structured_content" in returned:
        rows = returned["structured_content"]
        alone = isinstance(rows, Mapping) and list(rows) == [_WRAPPED]
        return rows[_WRAPPED] if alone and _WRAPPED not in spec.results else rows
    if not isinstance(returned, list):
        return returned
    texts = [block["text"] for block in returned if block.get("type") == "text"]
    if returned and not texts:
        kinds = sorted({str(block.get("type")) for block in returned})
        raise ToolError(
            f"Tool {spec.name!r} returned {', '.join(kinds)} and no text, which no plan can use. "
            "Leave it out of the toolbox."
        )
    if len(spec.results) == 1:
        return "\n".join(texts)
    return [row for text in texts for row in _decoded(spec, text)]


def _decoded(spec: ToolSpec, text: str) -> Sequence[Any]:
    try:
        row = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ToolError(
            f"Tool {spec.name!r} returned text that is no JSON; it declares the fields "
            f"{list(spec.results)}. Declare one field for its text."
        ) from error
    return row if isinstance(row, list) else [row]


def _bound(spec: ToolSpec, scope: frozenset[str]) -> ToolSpec:
    """Return the tool without the parameters that say who asks, which the scope fills in."""
    hidden = [parameter.name for parameter in spec.parameters if parameter.name in scope]
    called: RunAsync | None = spec.run_async
    if not hidden or called is None:
        return spec

    async def run_async(given: Mapping[str, Any], context: CallContext) -> Any:
        if lacking := [name for name in hidden if name not in context.scope]:
            raise ToolError(
                f"Tool {spec.name!r} needs to know the asker's {', '.join(lacking)}. Give it in "
                "the run's context: RunContext(scope={…})."
            )
        return await called({**given, **{n: context.scope[n] for n in hidden}}, context)

    kept = tuple(parameter for parameter in spec.parameters if parameter.name not in hidden)
    return replace(spec, parameters=kept, run_async=run_async)


def _cause(error: Exception) -> Exception:
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
