"""Tools that run in separate processes, which end with their calls."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from casewright.errors import ToolError
from casewright.graph import Limits
from casewright.graph.call import Call
from casewright.tools import CallContext, tool_from_function
from tests.stores.helpers import ROOT
from tests.support.waiting import until
from tests.tools import process_tools

CONTEXT = CallContext("run", "s3", scope={"tenant": "acme"})


def run_call(tool: Any, argument: str, seconds: float = 20.0) -> Call:
    call = Call(tool, {"a": argument}, CONTEXT, Limits(step_seconds=seconds))
    call.run()
    return call


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A zombie has ended; its parent has not waited for it.
    return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"


def test_process_tool_answers_from_another_process_that_ends_with_the_call() -> None:
    tool = tool_from_function(process_tools.whoami, results=("pid", "value"), process=True)
    call = run_call(tool, "hello")
    (row,) = call.rows
    assert row["value"] == "hello for acme in s3"
    assert row["pid"] != os.getpid()
    assert not is_alive(row["pid"])
    assert call.reports == [{"half": "way"}]


def test_decorated_function_runs_in_another_process() -> None:
    (row,) = run_call(process_tools.decorated, "hello").rows
    assert row["value"].startswith("hello by ")
    assert str(os.getpid()) not in row["value"]


def test_cancelled_process_tool_is_killed_with_its_child_processes(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    tool = tool_from_function(process_tools.hang, process=True)

    async def cancel_call() -> list[int]:
        call = Call(tool, {"a": str(file)}, CONTEXT, Limits())
        work = asyncio.ensure_future(call.arun())
        await asyncio.to_thread(until, lambda: file.exists() and file.read_text(), 60)
        pids = [int(pid) for pid in file.read_text().split()]
        assert all(map(is_alive, pids))
        work.cancel()
        await asyncio.wait({work})
        return pids

    pids = asyncio.run(cancel_call())
    assert len(pids) == 2
    until(lambda: not any(map(is_alive, pids)), 5)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("crash", "its process ended by SIGABRT without an answer"),
        ("tool", "told"),
        ("value", "end failed: ValueError: told"),
        ("unicode", "end failed: RuntimeError: UnicodeDecodeError: "),
    ],
)
def test_process_tool_that_crashes_or_raises_gives_its_call_an_error(
    argument: str, message: str
) -> None:
    assert message in run_call(tool_from_function(process_tools.end, process=True), argument).error


def test_process_tool_that_cannot_be_imported_is_refused() -> None:
    def inner(a: str) -> str:
        """No other process finds this."""
        return a

    for function in (inner, lambda a: a):
        with pytest.raises(ToolError, match="at the top level of a file"):
            tool_from_function(function, process=True)


CALLER = """
import sys
from casewright.tools import CallContext, tool_from_function
from casewright.graph import Limits
from casewright.graph.call import Call
from tests.tools import process_tools

tool = tool_from_function(process_tools.hang, process=True)
Call(tool, {"a": sys.argv[1]}, CallContext(), Limits()).run()
"""


def test_tool_process_ends_when_its_calling_process_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    caller = subprocess.Popen([sys.executable, "-c", CALLER, str(file)], cwd=ROOT)
    try:
        until(lambda: file.exists() and file.read_text(), 60, caller)
    finally:
        caller.kill()
        caller.wait()
    pids = [int(pid) for pid in file.read_text().split()]
    until(lambda: not any(map(is_alive, pids)), 5)
