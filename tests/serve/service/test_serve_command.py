"""`casewright serve` answers questions about the shop, and refuses invalid options."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from casewright.errors import InputError
from casewright.serve.session.studio import make_graph
from tests.serve.helpers import GALAXY, environment, one_line_error, run
from tests.serve.service.helpers import ROOT, events_of, started

TOKEN = "shop-token-0123456789"
SERVE = [sys.executable, "-m", "casewright", "serve", "--port", "0"]


def test_serve_answers_questions_about_the_shop_over_http(home: Path, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.toml"
    tokens.write_text(f'[[tokens]]\ntoken = "{TOKEN}"\ntenant = "acme"\n')
    command = [*SERVE, "--tokens", str(tokens), "--threads", str(tmp_path / "threads.db")]
    with started(command, tmp_path, **environment(home)) as server, server.client(TOKEN) as client:
        assert client.get("/readyz").json() == {"status": "ready"}
        body = {"question": GALAXY, "scope": {"customer": "C001"}}
        answer = client.post("/ask", json={**body, "thread_id": "visit"}).json()
        assert "8 GB" in answer["text"]
        assert [step["tool"] for step in answer["steps"]] == ["order_lookup", "prod_qna"]
        with client.stream("POST", "/ask/stream", json=body) as response:
            assert events_of(response)[-1][1]["text"] == answer["text"]
        other_body = {"question": GALAXY, "scope": {"customer": "C002"}}
        assert client.post("/ask", json=other_body).json()["steps"] != answer["steps"]
        assert client.get("/threads/visit").json()["status"] == "answered"
        # LangServe's routes exist by default.
        assert client.post("/casewright/invoke", json={}).status_code == 422
        assert server.stop() == 0


INVALID_OPTIONS = {
    "neither tokens nor the option without-tokens": ([], "--without-tokens"),
    "other machines without tokens": (
        ["--without-tokens", "--host", "0.0.0.0"],
        "Other machines can reach",
    ),
    "missing tokens file": (["--tokens", "missing.toml"], "missing.toml"),
    "unknown domain": (["--without-tokens", "--domain", "nothing"], "There is no domain"),
    "unknown planner": (["--without-tokens", "--planner", "nothing"], "There is no planner"),
    "a planner that calls tools": (
        ["--without-tokens", "--planner", "agent:local:anything"],
        "Choose another planner",
    ),
    "invalid retain": (["--without-tokens", "--retain", "all"], "off, verified or approved"),
    "unusable threads file": (["--without-tokens", "--threads", "/dev/null/x"], "cannot be used"),
    "unreachable threads database": (
        ["--without-tokens", "--threads", "postgresql://me@127.0.0.1:1/x"],
        "The threads' database cannot be used",
    ),
}


@pytest.fixture
def used_port() -> Iterator[str]:
    """Yield a port in use: a command with valid options ends there with an error."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield str(listening.getsockname()[1])


@pytest.mark.parametrize("case", INVALID_OPTIONS)
def test_invalid_options_of_serve_print_an_error_of_one_line(home: Path, case: str) -> None:
    arguments, message = INVALID_OPTIONS[case]
    assert message in one_line_error(run(home, "serve", "--port", "0", *arguments))


def test_options_of_serve_override_environment_variables(
    home: Path, used_port: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DOMAIN", "PLANNER", "GENERATOR"):
        monkeypatch.setenv(f"CASEWRIGHT_{name}", "nothing")
    flags = ("--domain", "shopping", "--planner", "case", "--generator", "extractive")
    completed = run(home, "serve", "--without-tokens", "--port", used_port, *flags)
    assert one_line_error(completed).startswith(f"Port {used_port} of 127.0.0.1 is taken: ")


def test_serve_refuses_the_option_without_tokens_when_tokens_are_given(
    home: Path, used_port: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = tmp_path / "tokens.toml"
    tokens.write_text(f'[[tokens]]\ntoken = "{TOKEN}"\ntenant = "acme"\n')
    completed = run(home, "serve", "--port", used_port, "--without-tokens", "--tokens", tokens)
    assert one_line_error(completed).startswith("--without-tokens is given, but bearer")
    monkeypatch.setenv("CASEWRIGHT_TOKENS", json.dumps([{"token": TOKEN, "tenant": "acme"}]))
    completed = run(home, "serve", "--port", used_port, "--without-tokens")
    assert one_line_error(completed).startswith("--without-tokens is given, but bearer")


def test_serve_names_a_port_that_is_in_use(home: Path, used_port: str) -> None:
    completed = run(home, "serve", "--without-tokens", "--port", used_port)
    assert one_line_error(completed).startswith(f"Port {used_port} of 127.0.0.1 is taken: ")


def test_serve_prints_the_pip_command_when_packages_are_missing(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    completed = run(home, "serve", "--without-tokens")
    assert "pip install 'casewright[serve]'" in one_line_error(completed)


#: Loads the graph as LangGraph's server does: from the file, without arguments.
LOAD_GRAPH = """
import asyncio, importlib.util, sys
file, _, name = sys.argv[1].partition(":")
spec = importlib.util.spec_from_file_location("studio", file)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
make = getattr(module, name)

async def make_both():
    return await asyncio.gather(make(), make())

graph, other = asyncio.run(make_both())
assert other is graph
assert asyncio.run(make()) is graph
assert graph.checkpointer is None
assert not {"fastapi", "casewright.serve.service"} & set(sys.modules)
state = graph.invoke({"question": sys.argv[2]}, context={"scope": {"customer": "C001"}})
print(state["answer"]["text"])
"""


def test_langgraph_server_loads_the_graph_without_arguments(home: Path) -> None:
    config = json.loads((ROOT / "langgraph.json").read_text())
    completed = subprocess.run(
        [sys.executable, "-c", LOAD_GRAPH, config["graphs"]["casewright"], GALAXY],
        cwd=ROOT,
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    assert "8 GB" in completed.stdout


def test_studio_graph_refuses_the_agent_planner(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CASEWRIGHT_PLANNER", "agent:local:anything")
    with pytest.raises(InputError, match="Choose another planner"):
        asyncio.run(make_graph())
