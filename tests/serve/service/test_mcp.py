"""The official MCP client calls the service's tools over HTTP and over stdio."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, TextContent

from tests.serve.helpers import environment, new_home, one_line_error, run
from tests.serve.service.helpers import ACME, OTHER, QUICK, Served, plan, served

pytestmark = pytest.mark.anyio
PLAN = "s1 = quick(a=question)\ns2 = quick(a=s1.value)"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home without stores, which these tests do not need."""
    return new_home(tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="module")
def mcp_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(
        tmp_path_factory.mktemp("mcp"), mcp=True, scopes={"hall": ["B", "C"]}, request_seconds=3
    ) as server:
        yield server


@asynccontextmanager
async def open_session(
    server: Served, token: str = ACME, scope: str = "hall=C"
) -> AsyncIterator[ClientSession]:
    headers = {"Authorization": f"Bearer {token}", "Casewright-Scope": scope}
    async with (
        httpx.AsyncClient(headers=headers, timeout=30) as client,
        streamable_http_client(f"{server.url}/mcp", http_client=client) as (reading, writing, _),
        ClientSession(reading, writing) as session,
    ):
        await session.initialize()
        yield session


def error_text(result: CallToolResult) -> str:
    """Return the text of a tool's error."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    assert result.isError
    assert "Traceback" not in content.text
    return content.text


async def test_mcp_client_calls_plan_run_plan_and_ask(mcp_service: Served) -> None:
    async with open_session(mcp_service) as session:
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        assert list(tools) == ["plan", "run_plan", "ask"]
        assert tools["run_plan"].inputSchema["required"] == ["question", "plan"]
        arguments = plan(PLAN.replace("\n", ";"))
        planned = (await session.call_tool("plan", arguments)).structuredContent
        assert planned is not None
        assert planned["plan"] == PLAN
        assert planned["plan_steps"][1]["needs"] == ["s1"]
        result = await session.call_tool("run_plan", {"question": "what?", "plan": PLAN})
        assert result.structuredContent is not None
        assert [step["status"] for step in result.structuredContent["steps"]] == ["done", "done"]
        assert result.structuredContent["planner"]["name"] == "run_plan"
        answer = (await session.call_tool("ask", {"question": QUICK})).structuredContent
    assert answer is not None
    with mcp_service.client() as client:
        expected = client.post("/ask", json={"question": QUICK, "scope": {"hall": "C"}}).json()
    assert (answer["text"], answer["evidence"]) == (expected["text"], expected["evidence"])


async def test_mcp_takes_the_tenant_from_the_token_and_scope_from_a_header(
    mcp_service: Served,
) -> None:
    for token, scope, user in ((ACME, "hall=B", "acme B"), (OTHER, "hall=C", "other C")):
        async with open_session(mcp_service, token, scope) as session:
            answer = (await session.call_tool("ask", {"question": QUICK})).structuredContent
            assert answer is not None
            assert f"found for {user}:" in answer["text"]
            # A model writes the arguments, so they must not set the user.
            for name, value in (("scope", {"hall": "B"}), ("thread_id", "t"), ("tenant", "acme")):
                refused = await session.call_tool("ask", {"question": QUICK, name: value})
                assert name in error_text(refused)
    async with open_session(mcp_service, scope="") as session:
        assert "The scope lacks" in error_text(await session.call_tool("ask", {"question": QUICK}))


async def test_mcp_returns_errors_as_results_with_their_message(mcp_service: Served) -> None:
    calls = {
        ("nothing", ()): "There is no tool 'nothing'",
        ("ask", ()): "question: Field required",
        ("ask", (("question", " "),)): "The question is empty",
        ("ask", (("question", 1),)): "question: Input should be a valid string",
        ("run_plan", (("question", "?"), ("plan", "s1 = quick("))): "s1: ",
        ("run_plan", (("question", "?"), ("plan", "s1 = rm()"))): "There is no tool rm",
        ("ask", tuple(plan("s1 = asks(a=question)").items())): "POST /ask with a thread_id",
        ("ask", tuple(plan("s1 = slow(b=60)").items())): "took longer than a request may",
    }
    async with open_session(mcp_service) as session:
        for (name, arguments), message in calls.items():
            assert message in error_text(await session.call_tool(name, dict(arguments)))


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"[]", b"{", b'{"jsonrpc": "2.0"}', b'"\xff"', b"9" * 5000, b"[" * 90 + b"]" * 90),
        *(b'{"jsonrpc": "2.0", "id": 1, "method": 2}', b"null"),
    ],
)
async def test_mcp_refuses_a_body_that_is_no_json_rpc_message(
    mcp_service: Served, body: bytes
) -> None:
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    with mcp_service.client() as client:
        response = client.post("/mcp", content=body, headers=headers)
        assert response.status_code == 422
        assert "not a JSON-RPC message" in response.json()["detail"]


async def test_mcp_refuses_unknown_methods_wrong_parameters_and_missing_tokens(
    mcp_service: Served,
) -> None:
    headers = {"Accept": "application/json, text/event-stream"}
    with mcp_service.client() as client:
        for method, parameters in (("rm", {}), ("tools/call", {"name": 1}), ("tools/call", {})):
            message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}
            response = client.post("/mcp", json=message, headers=headers)
            assert response.json()["error"]["code"] in (-32602, -32601)
        response = client.get("/mcp")
        assert (response.status_code, response.headers["Allow"]) == (405, "POST")
    with mcp_service.client(None) as client:
        assert client.post("/mcp", json={}).status_code == 401


async def test_mcp_call_is_cancelled_when_its_client_disconnects(mcp_service: Served) -> None:
    before = mcp_service.count_events("slow")
    async with open_session(mcp_service) as session, asyncio.timeout(30):
        call = asyncio.ensure_future(session.call_tool("ask", plan("s1 = slow(b=4)")))
        while mcp_service.count_events("slow") == before:
            await asyncio.sleep(0.02)
        cancelled = mcp_service.count_events("cancelled")
        call.cancel()
    async with asyncio.timeout(3):
        while mcp_service.count_events("cancelled") == cancelled:
            await asyncio.sleep(0.02)


def test_mcp_route_does_not_exist_without_the_option_mcp(service: Served) -> None:
    with service.client() as client:
        assert client.post("/mcp", json={}).status_code == 404


PLANT = '''
import asyncio, pathlib
from casewright import CallContext, Toolbox, own_domain, tool

@tool(results=("temperature",))
async def read_sensor(query: str, call: CallContext) -> list[dict]:
    """The temperature of a machine."""
    print("this would be no message")
    if "slow" in query:
        pathlib.Path("began").touch()
        try:
            await asyncio.sleep(60)
        finally:
            pathlib.Path("ended").touch()
    return [{"temperature": f"61 °C in hall {call.scope['hall']}"}]

cases = {"how warm is the mill": "s1 = read_sensor(query=question)"}
domain = own_domain("plant", Toolbox([read_sensor]), cases, scopes={"hall": ["B", "C"]})
'''


@asynccontextmanager
async def open_stdio_session(home: Path, folder: Path) -> AsyncIterator[ClientSession]:
    (folder / "plant.py").write_text(PLANT)
    command = ["-m", "casewright", "mcp", "--domain", "plant.py:domain", "--scope", "hall=C"]
    command += ["--planner", "parser"]
    server = StdioServerParameters(
        command=sys.executable, args=command, env=environment(home), cwd=folder
    )
    with (folder / "stderr").open("w") as errors:
        async with (
            stdio_client(server, errlog=errors) as (reading, writing),
            ClientSession(reading, writing) as session,
        ):
            await session.initialize()
            yield session


async def test_mcp_over_stdio_offers_the_same_tools_and_cancels_abandoned_calls(
    home: Path, tmp_path: Path
) -> None:
    async with open_stdio_session(home, tmp_path) as session:
        assert [tool.name for tool in (await session.list_tools()).tools] == [
            *("plan", "run_plan", "ask")
        ]
        answer = (await session.call_tool("ask", {"question": "how warm is it"})).structuredContent
        assert answer is not None
        assert "61 °C in hall C" in answer["text"]
        assert "Field required" in error_text(await session.call_tool("plan", {}))
        call = asyncio.ensure_future(
            session.call_tool("ask", {"question": "how warm is the slow mill"})
        )
        async with asyncio.timeout(30):
            while not (tmp_path / "began").exists():
                await asyncio.sleep(0.05)
        call.cancel()
    # The process cancelled the call of the client that disconnected, and ended.
    assert (tmp_path / "ended").exists()
    assert "Traceback" not in (tmp_path / "stderr").read_text()


async def test_approval_setting_applies_to_mcp_over_stdio(home: Path, tmp_path: Path) -> None:
    (tmp_path / "casewright.toml").write_text('approve = "always"')
    async with open_stdio_session(home, tmp_path) as session:
        refused = await session.call_tool("ask", {"question": "how warm is it"})
    assert "waits for a reply" in error_text(refused)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--scope", "customer=C9"], "There is no customer 'C9'"),
        (["--domain", "nothing"], "There is no domain"),
        (["--planner", "agent:local:anything"], "Choose another planner"),
    ],
)
def test_invalid_options_of_casewright_mcp_print_an_error_of_one_line(
    home: Path, flags: list[str], message: str
) -> None:
    assert message in one_line_error(run(home, "mcp", *flags))
