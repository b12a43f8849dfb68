"""The program of a tool's process, which executes one call of a function; see ``process``.

The program is started as a file, not as a module of the package: it can import the package only
after it has read ``sys.path`` from the request.
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
    """Read a request from stdin; write each report, then the rows or the error, as JSON lines."""
    # The function's output to stdout goes to stderr, so that it does not mix with the JSON lines.
    output = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)

    def write(**message: Any) -> None:
        output.write(json.dumps(message) + "\n")
        output.flush()

    request = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.path[:] = request["path"]
    try:
        write(returned=_call_function(request, write))
    except BaseException as error:  # noqa: BLE001 - reported to the caller
        write(error=type(error).__name__, message=str(error))


def _end_with_parent() -> None:
    """Wait until the parent ends, which closes stdin; then end this process and its children."""
    while os.read(0, 1024):
        pass
    os.killpg(0, signal.SIGKILL)


def _call_function(request: dict[str, Any], write: Any) -> list[dict[str, Any]]:
    from casewright.tools import CallContext, ToolSpec, process, rows, tool_from_function
    from casewright.tools.results import plain

    process.is_tool_process = True
    imported = getattr(_import_module(request["module"], request["file"]), request["name"])
    if isinstance(imported, ToolSpec):
        tool = imported
    else:
        tool = tool_from_function(imported, name=request["tool"], results=request["results"])
    context = CallContext(**request["context"], report=lambda event: write(report=plain({**event})))
    if tool.run is not None:
        return rows(tool, tool.run(request["arguments"], context))
    assert tool.run_async is not None
    return rows(tool, asyncio.run(tool.run_async(request["arguments"], context)))


def _import_module(name: str, file: str) -> ModuleType:
    """Import a file as a module: by ``name`` if this name leads to the file, else by its path."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        spec = None
    if spec is not None and spec.origin == file:
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location("casewright_tool_file", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, os.path.dirname(file))
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
