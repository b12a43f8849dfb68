"""What runs in a tool's own process: one call of one function, read from stdin.

Run as a file, since the package's place is in the request.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import json
import os
import signal
import sys
import threading
from types import ModuleType
from typing import Any


def main() -> None:
    """Call the function and write, a line each, its reports and what it returned or raised."""
    # What the function prints must not stand between the lines of the answer.
    answer = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)

    def write(**said: Any) -> None:
        answer.write(json.dumps(said) + "\n")
        answer.flush()

    request = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_input, daemon=True).start()
    sys.path[:] = request["path"]
    try:
        write(returned=_returned(request, write))
    except BaseException as error:  # noqa: BLE001 - told to who called
        write(error=type(error).__name__, message=str(error))


def _end_with_input() -> None:
    """End this process, and what it started, when the one that called it has ended."""
    while os.read(0, 1024):
        pass
    os.killpg(0, signal.SIGKILL)


def _returned(request: dict[str, Any], write: Any) -> list[dict[str, Any]]:
    from casewright.tools import CallContext, ToolSpec, process, rows, tool_from_function
    from casewright.tools.plain import plain

    process.is_child = True
    found = getattr(_module(request["module"], request["file"]), request["name"])
    tool = found
    if not isinstance(found, ToolSpec):
        tool = tool_from_function(found, name=request["tool"], results=request["results"])
    context = CallContext(**request["context"], report=lambda said: write(report=plain(dict(said))))
    if tool.run is not None:
        return rows(tool, tool.run(request["arguments"], context))
    return rows(tool, asyncio.run(tool.run_async(request["arguments"], context)))


def _module(name: str, file: str) -> ModuleType:
    """Import a module by its name where that finds this file, else by the file."""
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        found = None
    if found is not None and found.origin == file:
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location("casewright_tool_file", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    # It may import what lies beside it.
    sys.path.insert(0, os.path.dirname(file))
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
