"""Names, tags and metadata of a run in a callback handler, without secrets."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tools import InjectedToolArg
from langchain_core.tools import tool as langchain_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from casewright.graph import Answer, ChatGenerator, RunContext
from casewright.graph.feedback import FeedbackLimits, FeedbackSearch
from casewright.tools import tool_from_langchain, tool_from_store
from tests.graph.feedback_helpers import FakeJudge, all_relevant, note_store
from tests.graph.helpers import QUESTION, Ask, ScriptedModel, graph_of, tool

SECRET, CUSTOMER = "the-secret-of-the-context", "the-customer-who-asks"
PLAN = "s1 = find(a=context.page)\ns2 = find(a=s1.value)"
FIND = tool("find", lambda args, _: f"found {len(args)}")


class Trace(BaseCallbackHandler):
    """A callback handler that records the start and the output of every run."""

    def __init__(self) -> None:
        self.runs: list[dict[str, Any]] = []
        self.outputs: dict[Any, Any] = {}

    def on_chain_start(self, serialized: Any, inputs: Any, **run: Any) -> None:
        self.runs.append({"kind": "chain", **run})

    def on_chat_model_start(self, serialized: Any, messages: Any, **run: Any) -> None:
        self.runs.append({"kind": "model", **run})

    def on_tool_start(self, serialized: Any, input_str: str, **run: Any) -> None:
        self.runs.append({**run, "kind": "tool", "name": serialized["name"], "input": input_str})

    def on_chain_end(self, outputs: Any, **run: Any) -> None:
        self.outputs[run["run_id"]] = outputs

    def named(self, name: str, kind: str = "chain") -> list[dict[str, Any]]:
        return [run for run in self.runs if run["name"] == name and run["kind"] == kind]

    def own_metadata(self, name: str) -> dict[str, Any]:
        """Return casewright's metadata of the innermost run of this name."""
        metadata = self.named(name)[-1]["metadata"]
        return {key: value for key, value in metadata.items() if key.startswith("casewright_")}


def run_traced(ask: Ask, graph: Any, config: Any = None, **scope: str) -> tuple[Trace, Answer]:
    trace = Trace()
    answer = ask(
        graph,
        {"question": QUESTION, "context": {"page": SECRET}},
        {**(config or {}), "callbacks": [trace]},
        RunContext(scope=scope),
    )
    return trace, answer


def test_every_traced_run_has_the_tag_casewright(ask: Ask) -> None:
    trace, _ = run_traced(ask, graph_of([FIND], PLAN))
    assert {"casewright", "plan", "execute", "generate"} <= {run["name"] for run in trace.runs}
    assert all("casewright" in run["tags"] for run in trace.runs)


def test_trace_has_the_graph_as_root_above_nodes_and_steps(ask: Ask) -> None:
    trace, _ = run_traced(ask, graph_of([FIND], PLAN))
    (root,) = trace.named("casewright")
    assert root["parent_run_id"] is None
    parents = {run["run_id"]: run for run in trace.runs}
    for name, parent in {"plan": "casewright", "s1 find": "execute", "s2 find": "execute"}.items():
        first = trace.named(name)[0]
        assert parents[first["parent_run_id"]]["name"] == parent


def test_step_metadata_contains_run_planner_plan_step_and_tool(ask: Ask) -> None:
    trace, answer = run_traced(ask, graph_of([FIND], PLAN), customer=CUSTOMER)
    for step in ("s1", "s2"):
        assert trace.own_metadata(f"{step} find") == {
            "casewright_run_id": answer.run_id,
            "casewright_planner": "fixed",
            "casewright_plan": PLAN,
            "casewright_scope": ["customer"],
            "casewright_step": step,
            "casewright_tool": "find",
        }


def test_metadata_of_nodes_after_planning_contains_run_and_plan(ask: Ask) -> None:
    trace, answer = run_traced(ask, graph_of([FIND], PLAN))
    for node in ("execute", "generate"):
        assert trace.own_metadata(node)["casewright_run_id"] == answer.run_id
        assert trace.own_metadata(node)["casewright_plan"] == PLAN


def test_traced_end_of_a_step_contains_its_status(ask: Ask) -> None:
    def fail(arguments: Any, context: Any) -> Any:
        raise ValueError("no such thing")

    plan = "s1 = find()\ns2 = break_down()"
    trace, _ = run_traced(ask, graph_of([FIND, tool("break_down", fail)], plan))
    ended = [trace.outputs[trace.named(name)[0]["run_id"]] for name in ("s1 find", "s2 break_down")]
    assert [(end["step"], end["tool"], end["status"]) for end in ended] == [
        ("s1", "find", "done"),
        ("s2", "break_down", "failed"),
    ]


def test_metadata_is_plain_json_without_values_of_context_or_scope(ask: Ask) -> None:
    trace, _ = run_traced(ask, graph_of([FIND], PLAN), customer=CUSTOMER)
    visible = [{key: run[key] for key in ("name", "tags", "metadata")} for run in trace.runs]
    assert SECRET not in json.dumps(visible)
    assert CUSTOMER not in json.dumps(visible)
    for name in ("plan", "execute", "generate", "s1 find"):
        assert json.loads(json.dumps(trace.own_metadata(name))) == trace.own_metadata(name)


def test_trace_of_the_next_question_has_its_own_run_id(ask: Ask) -> None:
    graph = graph_of([FIND], PLAN, checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "one"}}
    _, first = run_traced(ask, graph, config)
    trace, second = run_traced(ask, graph, config)
    assert first.run_id != second.run_id
    assert trace.own_metadata("plan") == {"casewright_scope": []}
    assert trace.own_metadata("s1 find")["casewright_run_id"] == second.run_id


def test_metadata_of_tool_and_model_runs_contains_run_and_step(ask: Ask) -> None:
    @langchain_tool
    def look_up(query: str, customer: Annotated[str, InjectedToolArg]) -> str:
        """Look something up for who asks."""
        return f"it is found for {len(customer)}"

    look_up_tool = tool_from_langchain(look_up)
    generator = ChatGenerator(ScriptedModel(script="It is found. [E1]"))
    graph = graph_of([look_up_tool], "s1 = look_up(query=question)", generator)
    trace, answer = run_traced(ask, graph, customer=CUSTOMER)
    assert answer.text.startswith("It is found.")
    (tool_run,) = trace.named("look_up", "tool")
    assert tool_run["metadata"]["casewright_step"] == "s1"
    assert CUSTOMER not in str(tool_run)
    (model_run,) = [run for run in trace.runs if run["kind"] == "model"]
    assert model_run["metadata"]["casewright_run_id"] == answer.run_id
    assert "casewright_step" not in model_run["metadata"]


def test_feedback_loop_is_traced_below_its_step_with_each_search(ask: Ask) -> None:
    store, judge = note_store(), FakeJudge(all_relevant)
    search = FeedbackSearch(store, judge, limits=FeedbackLimits(first=4, more=3, rounds=2))
    notes = tool_from_store(store, name="notes", description="Notes.", search=search)
    trace, _ = run_traced(ask, graph_of([notes], "s1 = notes(query=question)"))
    parents = {run["run_id"]: run for run in trace.runs}
    (loop,) = trace.named("feedback")
    assert parents[loop["parent_run_id"]]["name"] == "s1 notes"
    assert loop["metadata"]["casewright_step"] == "s1"
    child_names = [run["name"] for run in trace.runs if run["parent_run_id"] == loop["run_id"]]
    assert child_names == ["begin", "search", "judge", "search", "judge", "finish"]


def test_trace_keeps_tags_metadata_and_run_name_of_the_caller(ask: Ask) -> None:
    caller_config = {"tags": ["theirs"], "metadata": {"plan": "premium"}, "run_name": "ours"}
    trace, _ = run_traced(ask, graph_of([FIND], PLAN), caller_config)
    (root,) = trace.named("ours")
    assert root["parent_run_id"] is None
    for run in (root, *trace.named("s1 find")):
        assert {"theirs", "casewright"} <= set(run["tags"])
        assert run["metadata"]["plan"] == "premium"


class Parent(TypedDict, total=False):
    question: str
    answer: dict[str, Any]


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_only_runs_of_the_graph_have_the_tag_within_a_parent_graph(mode: str) -> None:
    builder: Any = StateGraph(Parent)
    builder.add_node("before", lambda state: {"question": state["question"].upper()})
    builder.add_node("look_up", graph_of([FIND], "s1 = find()"))
    builder.add_edge(START, "before")
    builder.add_edge("before", "look_up")
    builder.add_edge("look_up", END)
    parent, trace = builder.compile(name="theirs"), Trace()
    config: Any = {"callbacks": [trace]}
    if mode == "sync":
        parent.invoke({"question": QUESTION}, config)
    else:
        asyncio.run(parent.ainvoke({"question": QUESTION}, config))
    for name in ("theirs", "before", "look_up"):
        assert {"casewright" in run["tags"] for run in trace.named(name)} == {False}
    for name in ("casewright", "plan", "execute", "s1 find", "generate"):
        assert {"casewright" in run["tags"] for run in trace.named(name)} == {True}
    assert trace.own_metadata("s1 find")["casewright_step"] == "s1"
