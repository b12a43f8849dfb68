"""LangGraph's Studio can show and resume the graph that ``langgraph.json`` names."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

ROOT = Path(__file__).parents[3]
PLANT = '''
from casewright import Toolbox, own_domain, tool

@tool
def find_machine(query: str) -> str:
    """Finds a machine of this plant."""
    return "M7"

cases = {"how warm is the mill": 's1 = find_machine(query="mill")'}
domain = own_domain("plant", Toolbox([find_machine]), cases)
'''
INPUT: Any = {"question": "how warm is the mill"}
CONTEXT: Any = {"scope": {}, "approve": "always", "limits": {"calls": 3}}


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "plant.py").write_text(PLANT)
    monkeypatch.setenv("CASEWRIGHT_HOME", str(tmp_path))
    monkeypatch.setenv("CASEWRIGHT_DOMAIN", f"{tmp_path / 'plant.py'}:domain")
    monkeypatch.setenv("CASEWRIGHT_PLANNER", "case")
    (target,) = json.loads((ROOT / "langgraph.json").read_text())["graphs"].values()
    path, _, name = target.partition(":")
    # LangGraph's server imports the graph in this way.
    spec = importlib.util.spec_from_file_location("studio_graph", ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return asyncio.run(getattr(module, name)())


def test_studio_graph_has_json_schemas_of_input_and_context(graph: Any) -> None:
    inputs, context = graph.get_input_jsonschema(), graph.get_context_jsonschema()
    assert inputs["required"] == ["question"]
    assert {*inputs["properties"]} == {"question", "context", "history"}
    assert {*context["properties"]} == {"scope", "limits", "mend", "tenant", "approve"}
    assert context["properties"]["scope"]["additionalProperties"] == {"type": "string"}
    assert {"enum": ["declared", "always"], "type": "string"} in context["properties"]["approve"][
        "anyOf"
    ]


@pytest.mark.parametrize(
    ("reply", "statuses"),
    [("yes", ["done"]), ("no", ["skipped"]), ("s1 = find_machine(query=question)", ["done"])],
)
def test_studio_graph_waits_for_approval_and_resumes_with_the_server_checkpointer(
    graph: Any, reply: str, statuses: list[str]
) -> None:
    saved_graph = graph.copy(update={"checkpointer": InMemorySaver()})
    config = {"configurable": {"thread_id": "one"}}

    async def run_statuses() -> list[str]:
        waiting = await saved_graph.ainvoke(INPUT, config, context=CONTEXT)
        assert waiting["__interrupt__"][0].value["kind"] == "approval"
        state = await saved_graph.ainvoke(Command(resume=reply), config, context=CONTEXT)
        return [step["status"] for step in state["answer"]["steps"]]

    assert asyncio.run(run_statuses()) == statuses
