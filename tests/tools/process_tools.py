"""Functions that another process imports."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from casewright.errors import ToolError
from casewright.tools import CallContext, tool


def whoami(a: str, call: CallContext) -> dict[str, Any]:
    """Says who was called, and by whom."""
    print("what a tool prints is no part of its answer")
    call.report({"half": "way"})
    return {"pid": os.getpid(), "value": f"{a} for {call.scope['tenant']} in {call.step}"}


@tool(process=True, results=("value",))
def decorated(a: str) -> str:
    """A tool where it is defined."""
    return f"{a} by {os.getpid()}"


def hang(a: str) -> str:
    """Starts a process of its own and does not end, whatever it is told."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    Path(a).write_text(f"{os.getpid()} {child.pid}")
    while True:
        time.sleep(1)


def end(a: str) -> str:
    """Ends as a crash of native code does, or raises."""
    if a == "crash":
        os.abort()
    raise {"tool": ToolError, "value": ValueError, "unicode": _unicode}[a]("told")


def _unicode(reason: str) -> UnicodeDecodeError:
    return UnicodeDecodeError("utf-8", b"", 0, 1, reason)
