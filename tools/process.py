"""Calls a tool's function in a separate process, which can always be killed."""

from __future__ import annotations

import asyncio
import builtins
import inspect
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from casewright.errors import ToolError
from casewright.tools.deadline import in_background
from casewright.tools.spec import CallContext, RunAsync

#: Maximum number of concurrent tool processes. Each further call waits; the wait counts towards the
#: time limit of the call's step.
MAX_PROCESSES = 8
#: Maximum bytes of a result or a report, each of which a process writes as one line.
MAX_LINE_BYTES = 32 * 1024 * 1024
_CHILD = Path(__file__).with_name("process_child.py")
#: True in a tool's process: there, a tool calls its function directly, not in another process.
is_tool_process = False


def in_process(tool: str, function: Callable[..., Any], results: tuple[str, ...]) -> RunAsync:
    """Return an async function, each call of which runs ``function`` in a new process.

    Cancelling a call, for example at a timeout, kills the process and its child processes. The
    process imports the function's module, and receives only the arguments and the context, as JSON.
    Raise ``ToolError`` unless ``function`` is at the top level of a module.
    """
    file = inspect.getsourcefile(function)
    name = getattr(function, "__qualname__", "")
    if file is None or not name.isidentifier():
        raise ToolError(
            f"Tool {tool!r} cannot run in a separate process: another process cannot import "
            f"{name or function!r}. Define it by def at the top level of a file."
        )
    location = {"module": function.__module__, "file": str(Path(file).resolve()), "name": name}

    async def run(arguments: Mapping[str, Any], context: CallContext) -> Any:
        field_names = ("run_id", "step", "key", "question")
        context_fields = {field: getattr(context, field) for field in field_names}
        request = {
            **location,
            "path": sys.path,
            "tool": tool,
            "results": results,
            "arguments": dict(arguments),
            "context": {**context_fields, "scope": dict(context.scope)},
        }
        return await in_background(_call_in_process(tool, json.dumps(request).encode(), context))

    return run


async def _call_in_process(tool: str, request: bytes, context: CallContext) -> Any:
    async with _process_limit(asyncio.get_running_loop()):
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(_CHILD),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
            limit=MAX_LINE_BYTES,
        )
        try:
            return await _read_result(tool, process, request, context)
        finally:
            # The process leads a group of processes, to which its child processes belong.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


async def _read_result(
    tool: str, process: asyncio.subprocess.Process, request: bytes, context: CallContext
) -> Any:
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError, ConnectionResetError):
        # Do not close stdin: the child ends when stdin closes, for example when this process ends.
        process.stdin.write(request + b"\n")
        await process.stdin.drain()
    while True:
        try:
            line = await process.stdout.readline()
        except ValueError as error:
            raise ToolError(f"Tool {tool!r} returned over {MAX_LINE_BYTES:,} bytes.") from error
        if not line:
            code = await process.wait()
            cause = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            raise ToolError(f"Tool {tool!r}: its process ended by {cause} without an answer.")
        output = json.loads(line)
        if "report" in output:
            context.report(output["report"])
        elif "error" in output:
            raise _raised_error(output["error"], output["message"])
        else:
            return output["returned"]


def _raised_error(name: str, message: str) -> Exception:
    """Return the error of a child: a ToolError, a built-in error, or else a ``RuntimeError``."""
    if name == ToolError.__name__:
        return ToolError(message)
    error_class = getattr(builtins, name, None)
    if isinstance(error_class, type) and issubclass(error_class, Exception):
        # Some classes require more than a message.
        with suppress(TypeError):
            return error_class(message)
    return RuntimeError(f"{name}: {message}")


@lru_cache(1)
def _process_limit(loop: asyncio.AbstractEventLoop) -> asyncio.Semaphore:
    """Return the semaphore that limits the tool processes of an event loop."""
    return asyncio.Semaphore(MAX_PROCESSES)
