"""Checkpoints contain plain JSON, whatever the tools return."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from pydantic import BaseModel

from casewright.errors import InputError
from casewright.graph import RunContext
from casewright.tools import CallContext
from tests.graph.helpers import (
    QUESTION,
    Arguments,
    Ask,
    Blocking,
    fresh_process,
    graph_of,
    statuses,
    tool,
    values,
)

CONFIG: Any = {"configurable": {"thread_id": "one"}}


@dataclass
class Row:
    value: str


class Model(BaseModel):
    value: str


RESULTS: dict[str, Any] = {
    "text": "plain",
    "number": 1.5,
    "mapping": {"value": {"deep": [1, None, True]}},
    "dataclass": Row("a"),
    "model": Model(value="b"),
    "rows": [{"value": "c"}, {"value": "d", "source": "page 3"}],
    "tuple": ("e", "f"),
    "unicode": "ünïcödé 日本語 \u2028 \x00",
    "half a surrogate pair": "broken \ud800 text",
    "nothing": None,
    "an object": object(),
    "not a number": float("nan"),
    "bytes": b"raw",
    "a huge number": 2**70,
}


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[SqliteSaver]:
    with SqliteSaver.from_conn_string(str(tmp_path / "runs.db")) as saver:
        yield saver


@pytest.mark.parametrize("kind", RESULTS)
def test_checkpointed_state_is_plain_json_for_any_tool_result(
    sqlite: SqliteSaver, kind: str
) -> None:
    tools = [tool("t", lambda *_: RESULTS[kind]), tool("u", lambda args, _: args["a"])]
    graph = graph_of(tools, "s1 = t()\ns2 = u(a=s1.value)", checkpointer=sqlite)
    answer = Blocking()(graph, config=CONFIG)
    assert set(statuses(answer)) == {"s1", "s2"}
    for checkpoint in graph.get_state_history(CONFIG):
        state = checkpoint.values
        assert json.loads(json.dumps(state)) == state
    assert graph.get_state(CONFIG).values["answer"] == answer.to_json()


def test_context_with_an_integer_above_64_bits_is_refused() -> None:
    tools = [tool("t", lambda args, _: {"value": str(args["a"])})]
    graph = graph_of(tools, "s1 = t(a=context.number)")
    with pytest.raises(InputError, match="64 bits"):
        graph.invoke({"question": QUESTION, "context": {"number": 2**70}})


def test_state_has_exactly_the_documented_keys(ask: Ask) -> None:
    graph = graph_of([tool("t", lambda *_: "x")], "s1 = t()", checkpointer=InMemorySaver())
    inputs = {
        "question": QUESTION,
        "context": {"page": "P1"},
        "history": [{"question": "a", "answer": "b"}],
    }
    ask(graph, inputs, CONFIG)
    state = graph.get_state(CONFIG).values
    documented = {"question", "context", "history", "run_id", "plan", "planning", "outcomes"}
    documented |= {"budget", "approval"}
    assert set(state) == {*documented, "answer"}
    assert json.loads(json.dumps(state)) == state


def test_scope_is_not_checkpointed(ask: Ask) -> None:
    saver = InMemorySaver()
    graph = graph_of([tool("t", lambda *_: "x")], "s1 = t()", checkpointer=saver)
    ask(graph, None, CONFIG, RunContext(scope={"customer": "customer-4711"}))
    assert "customer-4711" not in repr([*saver.list(CONFIG)])
    assert QUESTION in repr([*saver.list(CONFIG)])


def test_tool_that_changes_an_argument_changes_no_recorded_value(ask: Ask) -> None:
    def change_argument(arguments: Arguments, context: CallContext) -> Any:
        arguments["a"].append(context.step)
        return [len(arguments["a"])]

    tools = [tool("t", lambda *_: {"value": ["one"]}), tool("spoils", change_argument)]
    plan = "s1 = t()\ns2 = spoils(a=s1.value)\ns3 = spoils(a=s1.value, b=s2.value)"
    answer = ask(graph_of(tools, plan))
    assert values(answer) == {"s1": [["one"]], "s2": [2], "s3": [2]}
    assert answer.steps[1]["arguments"] == {"a": ["one"]}
    assert answer.steps[2]["arguments"] == {"a": ["one"], "b": 2}


def test_tool_that_adds_an_argument_leaves_recorded_arguments_plain(ask: Ask) -> None:
    def add_argument(arguments: Arguments, context: CallContext) -> str:
        arguments["later"] = object()  # type: ignore[index]
        return "written"

    answer = ask(graph_of([tool("writes", add_argument)], "s1 = writes(a=question)"))
    json.dumps(answer.to_json())
    assert answer.steps[0]["arguments"] == {"a": QUESTION}


STRICT_SCRIPT = """
import asyncio, json, sys
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from casewright.graph import RunContext
from tests.graph.helpers import QUESTION, graph_of, tool

config = {"configurable": {"thread_id": "one"}}
inputs = {"question": QUESTION, "context": {"page": {"id": "P1", "tags": ["a", 1, None]}},
          "history": [{"question": "a", "answer": "b"}]}
results = tool("t", lambda args, _: [{"value": args["a"]}, {"value": 2}])
tools = [results, tool("u", lambda *_: 1 / 0)]
plan = "s1 = t(a=context.page)\\ns2 = u(a=s1.value)\\ns3 = t(a=s1[1].value)"
scope = RunContext(scope={"customer": "c"})

async def run_async():
    async with AsyncSqliteSaver.from_conn_string(sys.argv[2]) as saver:
        graph = graph_of(tools, plan, checkpointer=saver)
        answer = (await graph.ainvoke(inputs, config, context=scope))["answer"]
        return answer, (await graph.aget_state(config)).values

def run_sync():
    with SqliteSaver.from_conn_string(sys.argv[2]) as saver:
        graph = graph_of(tools, plan, checkpointer=saver)
        answer = graph.invoke(inputs, config, context=scope)["answer"]
        return answer, graph.get_state(config).values

answer, state = run_sync() if sys.argv[1] == "sync" else asyncio.run(run_async())
assert state["answer"] == answer
assert state["context"] == {}, "the context was kept for the next question"
print(json.dumps([step["status"] for step in state["outcomes"]]))
"""


def test_run_works_with_strict_msgpack_checkpoints(ask: Ask, tmp_path: Path) -> None:
    process = fresh_process(
        STRICT_SCRIPT, ask.mode, str(tmp_path / "runs.db"), LANGGRAPH_STRICT_MSGPACK="true"
    )
    assert (process.returncode, process.stderr) == (0, "")
    assert json.loads(process.stdout) == ["done", "failed", "done"]


def test_later_question_of_a_thread_starts_a_new_run(ask: Ask) -> None:
    tools = [tool("t", lambda args, context: f"{context.question} {args.get('a')}")]
    graph = graph_of(tools, "s1 = t()", checkpointer=InMemorySaver())
    first = ask(graph, {"question": "first"}, CONFIG)
    second = ask(graph, {"question": "second"}, CONFIG)
    assert values(first) == {"s1": ["first None"]}
    assert values(second) == {"s1": ["second None"]}
    assert first.run_id != second.run_id
