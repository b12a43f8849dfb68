"""Tools of a real MCP server, which runs as a separate process on stdio."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from casewright.errors import DependencyError, ToolError
from casewright.graph import Answer, RunContext
from casewright.tools import Source, Toolbox, ToolSpec, tools_from_mcp
from tests.graph.helpers import Ask, Awaiting, Blocking, graph_of, statuses, step_of
from tests.support.waiting import until

pytest.importorskip("langchain_mcp_adapters.tools", reason="the extra mcp is not installed")

SCRIPT = Path(__file__).with_name("mcp_server.py")


@pytest.fixture(params=[Blocking(), Awaiting()], ids=lambda ask: ask.mode)
def ask(request: pytest.FixtureRequest) -> Ask:
    chosen: Ask = request.param
    return chosen


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mcp")


def connections(folder: Path) -> Any:
    arguments = [str(SCRIPT), str(folder)]
    return {"shop": {"transport": "stdio", "command": sys.executable, "args": arguments}}


def list_tools(folder: Path, **more: Any) -> dict[str, ToolSpec]:
    tools = asyncio.run(tools_from_mcp(connections(folder), **more))
    return {tool.name: tool for tool in tools}


@pytest.fixture(scope="module")
def tools(folder: Path) -> dict[str, ToolSpec]:
    results = {"as_text": ("name",), "untyped": ("name", "more")}
    sources = {"describe": {"product_id": ("step", "context")}}
    return list_tools(folder, results=results, sources=sources, scope=("customer",))


def test_mcp_tools_have_the_result_fields_of_their_output_schema(
    tools: dict[str, ToolSpec],
) -> None:
    assert len(Toolbox(tools.values())) == len(tools) + 1
    search = tools["search"]
    assert (search.description, search.results) == ("Finds products.", ("product_id", "name"))
    query, limit = search.parameters
    assert (query.kind, query.required, limit.kind, limit.required) == (
        "string",
        True,
        "integer",
        False,
    )
    assert tools["read_product"].results == ("product_id", "name")
    assert tools["describe"].results == tools["words"].results == ("evidence",)
    assert tools["describe"].parameters[0].sources == {Source.STEP, Source.CONTEXT}


def test_plan_with_several_mcp_tools_runs_to_an_answer(
    ask: Ask, tools: dict[str, ToolSpec]
) -> None:
    plan = """\
s1 = search(query="phone", limit=2)
s2 = describe(product_id=s1[1].product_id)
s3 = read_product(product_id=s1.product_id)
s4 = as_text(query="tea")
s5 = words(query="tea")
s6 = untyped(query="tea")
s7 = nothing(query="tea")"""
    answer = ask(graph_of(tools.values(), plan, step_seconds=60))
    results = {step["step"]: step["rows"] for step in answer.steps}
    assert results == {
        "s1": [
            {"product_id": "P0", "name": "phone 0"},
            {"product_id": "P1", "name": "phone 1"},
        ],
        "s2": [{"evidence": "P1 has 8 GB"}],
        "s3": [{"product_id": "P0", "name": "name of P0"}],
        "s4": [{"name": '[{"name": "tea a"}, {"name": "tea b"}]'}],
        "s5": [{"evidence": "tea one\ntea two"}],
        "s6": [{"name": "tea", "more": [1, 2]}],
        "s7": [],
    }
    assert statuses(answer)["s7"] == "empty"
    assert "P1 has 8 GB" in answer.text


def test_failing_mcp_tool_fails_its_step_and_the_run_continues(
    ask: Ask, tools: dict[str, ToolSpec]
) -> None:
    plan = """\
s1 = fails(query="tea")
s2 = describe(product_id=s1.evidence)
s3 = picture()
s4 = search(query="tea")"""
    answer = ask(graph_of(tools.values(), plan, step_seconds=60))
    assert statuses(answer) == {"s1": "failed", "s2": "skipped", "s3": "failed", "s4": "done"}
    assert "no luck with tea" in step_of(answer, "s1")["error"]
    assert step_of(answer, "s1")["attempts"] == 1
    assert "no text" in step_of(answer, "s3")["error"]


def test_mcp_server_that_dies_fails_its_step_and_serves_the_next(
    ask: Ask, tools: dict[str, ToolSpec]
) -> None:
    plan = 's1 = dies(query="tea")\ns2 = search(query="tea")'
    answer = ask(graph_of(tools.values(), plan, step_seconds=60))
    assert statuses(answer) == {"s1": "failed", "s2": "done"}
    assert "Connection closed" in step_of(answer, "s1")["error"]


def has_ended(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


def test_slow_mcp_tool_is_abandoned_in_time_and_its_server_ends(
    ask: Ask, tools: dict[str, ToolSpec], folder: Path
) -> None:
    started = time.monotonic()
    ask(graph_of(tools.values(), 's1 = search(query="tea")', step_seconds=60))
    # Scaled by a measured call: a busy machine starts the server slowly.
    allowed = 1 + 2 * (time.monotonic() - started)
    plan = 's1 = slow(query="tea")\ns2 = no_evidence()'
    (folder / "slow").unlink(missing_ok=True)
    started = time.monotonic()
    answer = ask(graph_of(tools.values(), plan, step_seconds=allowed))
    assert statuses(answer)["s1"] == "timed_out"
    assert time.monotonic() - started < allowed + 10
    process = int((folder / "slow").read_text())
    until(lambda: has_ended(process), 18)


def test_mcp_scope_argument_comes_from_the_run_context(
    ask: Ask, tools: dict[str, ToolSpec]
) -> None:
    assert [parameter.name for parameter in tools["orders"].parameters] == ["query"]
    graph = graph_of(tools.values(), 's1 = orders(query="tea")', step_seconds=60)
    answer = ask(graph, context=RunContext(scope={"customer": "C1"}))
    assert step_of(answer, "s1")["rows"] == [{"evidence": "tea of C1"}]
    answer = ask(graph)
    assert statuses(answer) == {"s1": "failed"}
    assert "user's customer" in step_of(answer, "s1")["error"]


def test_concurrent_mcp_runs_get_results_of_their_own_scope(tools: dict[str, ToolSpec]) -> None:
    graph = graph_of(tools.values(), "s1 = orders(query=question)", step_seconds=60)

    async def orders_of(name: str) -> str:
        state = await graph.ainvoke({"question": name}, context={"scope": {"customer": name}})
        return str(Answer.from_state(state).steps[0]["rows"])

    async def all_orders() -> list[str]:
        return list(await asyncio.gather(*(orders_of(f"C{n}") for n in range(4))))

    for number, rows in enumerate(asyncio.run(all_orders())):
        assert rows == str([{"evidence": f"C{number} of C{number}"}])


def test_prefix_makes_tool_names_of_two_mcp_servers_distinct(folder: Path) -> None:
    servers = {name: connections(folder)["shop"] for name in ("a", "b")}
    tools = asyncio.run(tools_from_mcp(servers, prefix=True))
    assert {"a_search", "b_search"} <= {tool.name for tool in tools}
    with pytest.raises(ToolError, match="two tools named"):
        Toolbox(asyncio.run(tools_from_mcp(servers)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"results": {"serach": ("name",)}}, r"\['serach'\], which no server has.*search"),
        ({"sources": {"serach": {}}}, r"\['serach'\]"),
        ({"sources": {"search": {"text": ("step",)}}}, "no parameter"),
        ({"scope": ("customer", "custmer")}, r"\['custmer'\], which no tool has.*'customer'"),
    ],
)
def test_settings_for_unknown_mcp_tools_or_arguments_are_refused(
    folder: Path, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ToolError, match=message):
        list_tools(folder, **settings)


@pytest.mark.parametrize("command", ["no-such-command", "false"])
def test_mcp_server_that_does_not_start_raises_tool_error_naming_it(command: str) -> None:
    server: Any = {"till": {"transport": "stdio", "command": command, "args": []}}
    with pytest.raises(ToolError, match=r"'till' does not list.*Check its command"):
        asyncio.run(tools_from_mcp(server))


#: A server that writes its process id and never answers.
SILENT = """
import os, pathlib, sys, time
pathlib.Path(sys.argv[1]).write_text(str(os.getpid()))
time.sleep(60)
"""


def test_silent_mcp_server_raises_tool_error_in_time_and_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("casewright.tools.from_mcp.LISTING_SECONDS", 3)
    pid_file = tmp_path / "process"
    arguments = ["-c", SILENT, str(pid_file)]
    server: Any = {"till": {"transport": "stdio", "command": sys.executable, "args": arguments}}
    started = time.monotonic()
    with pytest.raises(ToolError, match=r"'till' does not list.*no answer in 3 seconds"):
        asyncio.run(tools_from_mcp(server))
    assert time.monotonic() - started < 20
    assert has_ended(int(pid_file.read_text()))


def test_missing_extra_mcp_raises_dependency_error_naming_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "langchain_mcp_adapters.tools", None)
    with pytest.raises(DependencyError, match=r"casewright\[mcp\]"):
        asyncio.run(tools_from_mcp({}))
