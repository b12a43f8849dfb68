"""A tool's function in a process of its own, which can be ended whatever it does."""

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
from casewright.tools.background import in_background
from casewright.tools.spec import CallContext, RunAsync

#: Processes of tools that are at work at a time; a step waits for one within its own time.
AT_ONCE = 8
#: The longest line that a process may write: what it returns, or one report.
MOST_BYTES = 32 * 1024 * 1024
_CHILD = Path(__file__).with_name("process_child.py")
#: Whether this is such a process: its tool's function is called, and starts no other one.
is_child = False


def in_process(tool: str, function: Callable[..., Any], results: tuple[str, ...]) -> RunAsync:
    """Return what calls a function in a process of its own, which ends with the call.

    A call that is cancelled, as one that is out of time is, kills the process and all that it
    started. The process imports the function's module, and is given no more than arguments and
    context, as JSON.

    Args:
        tool: The tool's name.
        function: It stands at the top of a file.
        results: The fields of its results.

    Raises:
        ToolError: The function cannot be imported by another process.
    """
    file = inspect.getsourcefile(function)
    name = getattr(function, "__qualname__", "")
    if file is None or not name.isidentifier():
        raise ToolError(
            f"Tool {tool!r} cannot run in a process of its own: another process cannot import "
            f"{name or function!r}. Define it by def at the top of a file."
        )
    place = {"module": function.__module__, "file": str(Path(file).resolve()), "name": name}

    async def run(given: Mapping[str, Any], context: CallContext) -> Any:
        about = {field: getattr(context, field) for field in ("run_id", "step", "key", "question")}
        request = {
            **place,
            "path": sys.path,
            "tool": tool,
            "results": results,
            "arguments": dict(given),
            "context": {**about, "scope": dict(context.scope)},
        }
        return await in_background(_called(tool, json.dumps(request).encode(), context))

    return run


async def _called(tool: str, request: bytes, context: CallContext) -> Any:
    async with _places(asyncio.get_running_loop()):
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(_CHILD),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
            limit=MOST_BYTES,
        )
        try:
            return await _answer(tool, process, request, context)
        finally:
            # What it started ends with it, whether it has answered or not.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


async def _answer(
    tool: str, process: asyncio.subprocess.Process, request: bytes, context: CallContext
) -> Any:
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError, ConnectionResetError):
        # Left open: it closes when this process ends, and the other one ends with it.
        process.stdin.write(request + b"\n")
        await process.stdin.drain()
    while True:
        try:
            line = await process.stdout.readline()
        except ValueError as error:
            raise ToolError(f"Tool {tool!r} returned over {MOST_BYTES:,} bytes.") from error
        if not line:
            how = _end(await process.wait())
            raise ToolError(f"Tool {tool!r}: its process ended by {how} without an answer.")
        said = json.loads(line)
        if "report" in said:
            context.report(said["report"])
        elif "error" in said:
            raise _error(said)
        else:
            return said["returned"]


def _error(said: Mapping[str, str]) -> Exception:
    """Return what a function raised; of its kind where that is Python's own."""
    if said["error"] == ToolError.__name__:
        return ToolError(said["message"])
    kind = getattr(builtins, said["error"], None)
    if isinstance(kind, type) and issubclass(kind, Exception):
        # Some want more than a message.
        with suppress(TypeError):
            return kind(said["message"])
    return RuntimeError(f"{said['error']}: {said['message']}")


def _end(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


@lru_cache(1)
def _places(loop: asyncio.AbstractEventLoop) -> asyncio.Semaphore:
    return asyncio.Semaphore(AT_ONCE)
