"""The MCP tools ``plan``, ``run_plan`` and ``ask``, at ``/mcp`` and over stdio.

The user's scope comes from a header or an option, since a model writes the arguments.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Mapping
from typing import Any
from urllib.parse import parse_qsl

from fastapi import APIRouter, Request, Response
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import StreamableHTTPServerTransport
from pydantic import BaseModel, ValidationError
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from casewright import __version__
from casewright.errors import InputError
from casewright.serve.service.models import AnswerBody, AskBody, PlannedBody, WrittenPlanBody
from casewright.serve.service.problems import invalid_detail, status_and_detail
from casewright.serve.service.runs import Runs, Waiting
from casewright.serve.service.tokens import tenant_of

PATH = "/mcp"
#: The header with the scope, such as ``customer=C001``; ``&`` joins several fields.
SCOPE_HEADER = "Casewright-Scope"
#: A call ends this time before its request's deadline, so that it can report the timeout.
MARGIN_SECONDS = 0.5
#: Fields of a body that no argument can set.
_NOT_ARGUMENTS = ("scope", "thread_id")
#: The type of the arguments, the type of the result and the description, by tool name.
_TOOLS: Mapping[str, tuple[type[AskBody], type[BaseModel], str]] = {
    "plan": (AskBody, PlannedBody, "Write a plan of tool calls for a question without running it."),
    "run_plan": (WrittenPlanBody, AnswerBody, "Run a plan, and answer from its results."),
    "ask": (AskBody, AnswerBody, "Plan and run tool calls for a question; answer with citations."),
}
router = APIRouter(include_in_schema=False)


def _tool_definition(name: str) -> types.Tool:
    body_type, result_type, description = _TOOLS[name]
    schema = body_type.model_json_schema()
    for field in _NOT_ARGUMENTS:
        del schema["properties"][field]
    return types.Tool(
        name=name,
        description=description,
        inputSchema=schema,
        outputSchema=result_type.model_json_schema(),
        annotations=types.ToolAnnotations(readOnlyHint=True) if name == "plan" else None,
    )


def tools_server(
    runs: Runs, tenant: str, scope: Mapping[str, str], max_seconds: float
) -> Server[Any, Any]:
    """Return an MCP server with the tools for a tenant; a call may take ``max_seconds``.

    A failed call returns a result with ``isError`` and the message that HTTP clients get.
    """
    server: Server[Any, Any] = Server("casewright", __version__, runs.parts.description or None)

    # The MCP library's decorators have no types.
    @server.list_tools()  # type: ignore[no-untyped-call, untyped-decorator]
    async def list_tools() -> list[types.Tool]:
        return [_tool_definition(name) for name in _TOOLS]

    @server.call_tool(validate_input=False)  # type: ignore[untyped-decorator]
    async def call(name: str, arguments: dict[str, Any]) -> Any:
        try:
            async with asyncio.timeout(max_seconds):
                return await _await_in_own_task(_call_tool(runs, tenant, name, arguments, scope))
        except ValidationError as error:
            detail = invalid_detail(error.errors())
        except Exception as error:  # noqa: BLE001 - the client gets the detail only
            detail = status_and_detail(error)[1]
        content = types.TextContent(type="text", text=detail)
        return types.CallToolResult(content=[content], isError=True)

    return server


async def _await_in_own_task(work: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
    """Run work in a separate task, which is cancelled at most once; return the result.

    anyio, which the MCP library uses, cancels a task repeatedly until the task ends. The second
    cancellation would interrupt LangGraph while LangGraph stops the steps.
    """
    task = asyncio.ensure_future(work)
    # Retrieve the exception, or asyncio logs it.
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    try:
        return await asyncio.shield(task)
    finally:
        task.cancel()


async def _call_tool(
    runs: Runs, tenant: str, name: str, arguments: dict[str, Any], scope: Mapping[str, str]
) -> dict[str, Any]:
    if name not in _TOOLS:
        raise InputError(f"There is no tool {name!r:.80}. There are: {', '.join(_TOOLS)}.")
    if refused := sorted(set(_NOT_ARGUMENTS) & arguments.keys()):
        raise InputError(f"{refused[0]} is not an argument. Leave it out.")
    body = _TOOLS[name][0].model_validate({**arguments, "scope": dict(scope)})
    if name == "plan":
        return await runs.plan(body, tenant)
    result = await runs.ask(body, tenant)
    assert not isinstance(result, Waiting)  # Only a run in a thread can wait.
    return result


class _McpResponse(Response):
    """A response that the MCP library writes, with a new server for each request.

    No state is kept between requests; a client that disconnects cancels its call.
    """

    def __init__(self, request: Request) -> None:
        super().__init__()
        self._request = request

    async def __call__(self, asgi_scope: Scope, receive: Receive, send: Send) -> None:
        async def receive_body() -> dict[str, Any]:
            return {"type": "http.request", "body": await request.body(), "more_body": False}

        request, loop = self._request, asyncio.get_running_loop()
        max_seconds = request.state.deadline - loop.time() - MARGIN_SECONDS
        user_scope = dict(parse_qsl(request.headers.get(SCOPE_HEADER, ""), max_num_fields=16))
        runs, tenant = request.app.state.runs, tenant_of(asgi_scope)
        server = tools_server(runs, tenant, user_scope, max_seconds)
        transport = StreamableHTTPServerTransport(None, is_json_response_enabled=True)
        async with transport.connect() as (incoming, outgoing):
            options = server.create_initialization_options()
            work = asyncio.ensure_future(server.run(incoming, outgoing, options, stateless=True))
            try:
                await transport.handle_request(asgi_scope, receive_body, send)
            finally:
                work.cancel()
                await asyncio.wait({work})
                await transport.terminate()


@router.post(PATH)
async def mcp(request: Request) -> Response:
    """Answer a message of MCP's streamable HTTP transport."""
    # Check the body here: the MCP library answers 500 to some bodies, and logs others in full.
    try:
        message = types.JSONRPCMessage.model_validate(json.loads(await request.body())).root
    except (ValueError, RecursionError):
        raise InputError("The body is not a JSON-RPC message. Send one.") from None
    if not isinstance(message, types.JSONRPCRequest):
        # Without sessions, a notification or a reply has no effect.
        return Response(status_code=202)
    try:
        types.ClientRequest.model_validate(message.model_dump(by_alias=True, exclude_none=True))
    except ValidationError:
        error = {
            "code": types.INVALID_PARAMS,
            "message": "The method is unknown, or its parameters are not valid.",
        }
        return JSONResponse({"jsonrpc": "2.0", "id": message.id, "error": error})
    return _McpResponse(request)
