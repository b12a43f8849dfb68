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

#: Maximum number of concurrent tool processes. Further calls wait; their step's time limit includes
#: the wait.
MAX_PROCESSES = 8
#: Maximum bytes of a line that a process writes: a result or a report.
MAX_LINE_BYTES = 32 * 1024 * 1024
_CHILD = Path(__file__).with_name("process_child.py")
#: True in a tool's process, where the tool of a function calls the function directly.
is_child = False


def in_process(tool: str, function: Callable[..., Any], results: tuple[str, ...]) -> RunAsync:
    """Return an async function that calls a function in a new process for each call.

    Cancelling a call, for example at a timeout, kills the process and its child processes. The
    process imports the function's module, and receives only the arguments and the context, as JSON.
    Raise ``ToolError`` unless the function is at the top level of a module.
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
        fields = {field: getattr(context, field) for field in ("run_id", "step", "key", "question")}
        request = {
            **location,
            "path": sys.path,
            "tool": tool,
            "results": results,
            "arguments": dict(arguments),
            "context": {**fields, "scope": dict(context.scope)},
        }
        return await in_background(_call_in_process(tool, json.dumps(request).encode(), context))

    return run


async def _call_in_process(tool: str, request: bytes, context: CallContext) -> Any:
    async with _process_slots(asyncio.get_running_loop()):
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
            # The process is the leader of a group, which includes its child processes.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


async def _read_result(
    tool: str, process: asyncio.subprocess.Process, request: bytes, context: CallContext
) -> Any:
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError, ConnectionResetError):
        # Keep stdin open: the child ends when stdin closes. The end of this process closes it too.
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
        message = json.loads(line)
        if "report" in message:
            context.report(message["report"])
        elif "error" in message:
            raise _raised_error(message["error"], message["message"])
        else:
            return message["returned"]


def _raised_error(name: str, message: str) -> Exception:
    """Return an error of the class that the function raised, if that is ToolError or a builtin."""
    if name == ToolError.__name__:
        return ToolError(message)
    error_class = getattr(builtins, name, None)
    if isinstance(error_class, type) and issubclass(error_class, Exception):
        # Some classes require more than a message.
        with suppress(TypeError):
            return error_class(message)
    return RuntimeError(f"{name}: {message}")


@lru_cache(1)
def _process_slots(loop: asyncio.AbstractEventLoop) -> asyncio.Semaphore:
    return asyncio.Semaphore(MAX_PROCESSES)
