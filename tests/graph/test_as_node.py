"""The compiled graph as a node of a ``StateGraph`` with other keys."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from pydantic import BaseModel
from typing_extensions import TypedDict

from casewright.errors import InputError
from casewright.graph import Answer, RunContext, as_node
from casewright.tools import CallContext
from tests.graph.helpers import QUESTION, Arguments, fresh_process, graph_of, tool

CONFIG: Any = {"configurable": {"thread_id": "one"}}
MODES = pytest.mark.parametrize("mode", ["sync", "async"])


class Parent(TypedDict, total=False):
    query: str
    page: dict[str, Any]
    turns: list[Any]
    reply: str
    sources: list[str]
    steps: int


def parent_of(node: Any, saver: Any = None, state: Any = Parent, context: Any = None) -> Any:
    builder: Any = StateGraph(state, context_schema=context)
    builder.add_node("look_up", node)
    builder.add_edge(START, "look_up")
    builder.add_edge("look_up", END)
    return builder.compile(checkpointer=saver)


def run(mode: str, graph: Any, inputs: Any, **options: Any) -> Any:
    if mode == "sync":
        return graph.invoke(inputs, CONFIG, **options)
    return asyncio.run(graph.ainvoke(inputs, CONFIG, **options))


def find_for_customer(arguments: Arguments, context: CallContext) -> str:
    return f"found by {context.scope.get('customer', 'nobody')} for {arguments.get('a')}"


FIND = tool("find", find_for_customer)
GRAPH = graph_of([FIND], "s1 = find(a=context.product_id)")
PLAIN = graph_of([FIND], "s1 = find()")


@MODES
def test_node_reads_question_and_context_from_parent_keys_and_writes_the_answer(mode: str) -> None:
    answer = {"reply": "text", "sources": "citations", "steps": lambda result: len(result.steps)}
    node = as_node(GRAPH, question="query", context="page", answer=answer)
    state = run(mode, parent_of(node), {"query": QUESTION, "page": {"product_id": "P7"}})
    assert "found by nobody for P7" in state["reply"]
    assert (state["sources"], state["steps"]) == (["E1"], 1)


@MODES
def test_node_uses_functions_to_read_parent_state_and_write_its_update(mode: str) -> None:
    node = as_node(
        GRAPH,
        question=lambda state: state["turns"][-1],
        context=lambda state: {"product_id": state["turns"][0]},
        answer=lambda result: {"turns": [result.text]},
    )
    state = run(mode, parent_of(node), {"turns": ["P8", QUESTION]})
    assert "for P8" in state["turns"][0]


def test_node_writes_the_answer_text_to_a_single_key() -> None:
    state = run("sync", parent_of(as_node(PLAIN, question="query", answer="reply")), INPUT)
    assert state["reply"].startswith("- ")


INPUT: Any = {"query": QUESTION}


class PydanticState(BaseModel):
    query: str = ""
    reply: str = ""


@dataclass
class DataclassState:
    query: str = ""
    reply: str = ""
    turns: list[Any] = field(default_factory=list)


@pytest.mark.parametrize("state", [PydanticState, DataclassState])
def test_node_accepts_a_pydantic_model_or_a_dataclass_as_parent_state(state: Any) -> None:
    node = as_node(PLAIN, question="query", history="turns", answer="reply")
    assert run("sync", parent_of(node, state=state), INPUT)["reply"]


def test_node_passes_the_history_of_the_parent_to_the_generator() -> None:
    histories = []

    class ListeningGenerator:
        name = "listens"

        def generate(self, request: Any) -> Any:
            from casewright.graph import Generation

            histories.append(request.history)
            return Generation("so it is")

    graph = graph_of([FIND], "s1 = find()", ListeningGenerator())  # type: ignore[arg-type]
    node = as_node(graph, question="query", history="turns", answer="reply")
    turns = [{"question": "q", "answer": "a"}]
    run("sync", parent_of(node), {**INPUT, "turns": turns})
    run("sync", parent_of(node), INPUT)
    assert [list(history) for history in histories] == [turns, []]


def test_node_error_names_a_missing_parent_key_or_an_unknown_answer_field() -> None:
    with pytest.raises(InputError, match=r"no key 'question'.*'query'"):
        run("sync", parent_of(as_node(GRAPH)), INPUT)
    with pytest.raises(InputError, match=r"names \['txt'\].*citations"):
        as_node(GRAPH, answer={"reply": "txt"})


class OtherContext(TypedDict, total=False):
    user: str
    planner: str


@dataclass
class ScopeContext:
    scope: dict[str, str]
    other: int = 0


@MODES
def test_node_passes_the_run_context_of_the_parent_to_tools(mode: str) -> None:
    node = as_node(PLAIN, question="query", answer="reply")
    c1, c2 = RunContext(scope={"customer": "C1"}), ScopeContext(scope={"customer": "C2"})
    assert "by C1" in run(mode, parent_of(node, context=RunContext), INPUT, context=c1)["reply"]
    assert "by C2" in run(mode, parent_of(node, context=ScopeContext), INPUT, context=c2)["reply"]


@MODES
def test_node_converts_the_context_of_the_parent_with_a_function(mode: str) -> None:
    node = as_node(
        PLAIN,
        question="query",
        answer="reply",
        run_context=lambda parent: RunContext(scope={"customer": parent["user"]}),
    )
    user = {"user": "C3", "planner": "a word of the parent's"}
    assert "by C3" in run(mode, parent_of(node, context=OtherContext), INPUT, context=user)["reply"]


def test_node_refuses_an_unrelated_parent_context_and_names_run_context() -> None:
    node = as_node(GRAPH, question="query", answer="reply")
    with pytest.raises(InputError, match=r"planner=str.*run_context"):
        run("sync", parent_of(node, context=OtherContext), INPUT, context={"planner": "gpt"})


@MODES
def test_node_answers_when_the_parent_runs_with_max_concurrency_1(mode: str) -> None:
    parent = parent_of(as_node(PLAIN, question="query", answer="reply"))
    config: Any = {"max_concurrency": 1}
    if mode == "sync":
        assert parent.invoke(INPUT, config)["reply"]
    else:
        assert asyncio.run(parent.ainvoke(INPUT, config))["reply"]


def pause_and_resume(mode: str, open_saver: Any) -> tuple[Any, Counter[str]]:
    """Run until the interrupt, then resume with a new parent and saver; return state and calls."""
    calls: Counter[str] = Counter()

    def counted(arguments: Arguments, context: CallContext) -> str:
        calls[context.step] += 1
        return f"value of {context.step}"

    def asks(arguments: Arguments, context: CallContext) -> str:
        return f"the user says {interrupt('which one?')}"

    plan = "s1 = counted()\ns2 = counted()\ns3 = asks(a=s1.value)\ns4 = counted(a=s3.value)"

    def parent(saver: Any) -> Any:
        graph = graph_of([tool("counted", counted), tool("asks", asks)], plan)
        node = as_node(graph, question="query", answer={"reply": "text", "steps": "steps"})
        return parent_of(node, saver, state=StepsState)

    if mode == "sync":
        with open_saver() as saver:
            paused = parent(saver).invoke(INPUT, CONFIG)
        with open_saver() as saver:
            state = parent(saver).invoke(Command(resume="the red one"), CONFIG)
    else:

        async def run_both() -> tuple[Any, Any]:
            async with open_saver() as saver:
                paused = await parent(saver).ainvoke(INPUT, CONFIG)
            async with open_saver() as saver:
                return paused, await parent(saver).ainvoke(Command(resume="the red one"), CONFIG)

        paused, state = asyncio.run(run_both())
    assert {pause.value for pause in paused["__interrupt__"]} == {"which one?"}
    return state, calls


class StepsState(TypedDict, total=False):
    query: str
    reply: str
    steps: list[Any]


@MODES
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_parent_checkpointer_resumes_the_node_without_repeating_a_finished_step(
    mode: str, kind: str, tmp_path: Path
) -> None:
    memory = InMemorySaver()
    sqlite: Any = SqliteSaver if mode == "sync" else AsyncSqliteSaver

    def open_saver() -> Any:
        return memory if kind == "memory" else sqlite.from_conn_string(str(tmp_path / "runs.db"))

    state, calls = pause_and_resume(mode, open_saver)
    assert "the user says the red one" in state["reply"]
    assert [step["status"] for step in state["steps"]] == ["done"] * 4
    assert calls == {"s1": 1, "s2": 1, "s4": 1}


KILLED_SCRIPT = """
import json, os, signal, sys, time
from pathlib import Path
from langgraph.checkpoint.sqlite import SqliteSaver
from casewright.graph import as_node
from tests.graph.helpers import graph_of, tool
from tests.graph.test_as_node import CONFIG, INPUT, StepsState, parent_of

folder, resumes = Path(sys.argv[1]), sys.argv[2] == "again"

def counted(arguments, context):
    with open(folder / "calls", "a") as log:
        log.write(f"{context.step} {context.key}\\n")
    return context.step

def kills(arguments, context):
    counted(arguments, context)
    if not resumes:
        time.sleep(0.7)  # a step is finished once its result is saved
        os.kill(os.getpid(), signal.SIGKILL)
    return "survived"

plan = "s1 = counted()\\ns2 = counted(a=s1.value)\\ns3 = kills(a=s2.value)"
graph = graph_of([tool("counted", counted), tool("kills", kills)], plan)
node = as_node(graph, question="query", answer={"reply": "text", "steps": "steps"})
with SqliteSaver.from_conn_string(str(folder / "runs.db")) as saver:
    parent = parent_of(node, saver, state=StepsState)
    print(json.dumps(parent.invoke(None if resumes else INPUT, CONFIG)["steps"]))
"""


def test_killed_parent_resumes_in_a_new_process_without_repeating_finished_steps(
    tmp_path: Path,
) -> None:
    assert fresh_process(KILLED_SCRIPT, str(tmp_path), "first").returncode == -9
    process = fresh_process(KILLED_SCRIPT, str(tmp_path), "again")
    assert process.returncode == 0, process.stderr
    assert [step["status"] for step in json.loads(process.stdout)] == ["done"] * 3
    calls = (tmp_path / "calls").read_text().split("\n")[:-1]
    assert [call.split()[0] for call in calls] == ["s1", "s2", "s3", "s3"]
    assert calls[2] == calls[3], "the call key changed"


def test_node_keeps_the_durability_of_the_parent() -> None:
    saver = InMemorySaver()
    parent = parent_of(as_node(PLAIN, question="query", answer="reply"), saver)
    parent.invoke(INPUT, CONFIG, durability="exit")
    assert {entry.config["configurable"]["checkpoint_ns"] for entry in saver.list(CONFIG)} == {""}


@MODES
def test_two_nodes_of_the_same_graph_do_not_mix_their_answers(mode: str) -> None:
    builder: Any = StateGraph(Parent)
    for name, key in (("first", "reply"), ("second", "sources")):
        node = as_node(
            GRAPH,
            question="query",
            context=lambda state, name=name: {"product_id": name},
            answer=lambda result, key=key: {key: result.text},
        )
        builder.add_node(name, node)
        builder.add_edge(START, name)
    state = run(mode, builder.compile(checkpointer=InMemorySaver()), INPUT)
    assert "for first" in state["reply"]
    assert "for second" in state["sources"]


def test_node_passes_the_whole_answer_to_a_function() -> None:
    seen: list[Answer] = []
    node = as_node(PLAIN, question="query", answer=lambda reply: seen.append(reply) or {"steps": 1})
    run("sync", parent_of(node), INPUT)
    assert Answer.from_json(seen[0].to_json()) == seen[0]
