"""The compiled graph as a tool of an agent that calls tools."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt

from casewright.graph import Answer, RunContext, as_tool
from casewright.tools import CallContext
from tests.graph.helpers import (
    QUESTION,
    Arguments,
    ScriptedModel,
    fresh_process,
    graph_of,
    tool,
    values,
)

CONFIG: Any = {"configurable": {"thread_id": "one"}}
MODES = pytest.mark.parametrize("mode", ["sync", "async"])


class ToolCallingModel(ScriptedModel):
    """A scripted chat model that accepts tools."""

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self


def find_memory(arguments: Arguments, context: CallContext) -> dict[str, str]:
    customer = context.scope.get("customer", "nobody")
    return {"value": f"8 GB, says {customer} of {arguments.get('a')}", "source": "manual:3"}


GRAPH = graph_of([tool("find", find_memory)], "s1 = find(a=context.product_id)")
PLAIN_GRAPH = graph_of([tool("find", find_memory)], "s1 = find()")
ABOUT_P1 = {"question": QUESTION, "context": {"product_id": "P1"}}
SHOP = as_tool(GRAPH, "ask_the_shop", "Knows the shop's products and orders.")


def call(tool_: Any, arguments: dict[str, Any], mode: str = "sync") -> Any:
    tool_call = {"type": "tool_call", "id": "c1", "name": tool_.name, "args": arguments}
    return tool_.invoke(tool_call) if mode == "sync" else asyncio.run(tool_.ainvoke(tool_call))


def calls(*arguments: dict[str, Any], name: str = "ask_the_shop") -> AIMessage:
    tool_calls = [{"id": f"c{n}", "name": name, "args": args} for n, args in enumerate(arguments)]
    return AIMessage("", tool_calls=tool_calls)


def script(*answers: AIMessage | str) -> ToolCallingModel:
    """Return a model that gives these answers one after the other."""
    remaining = list(answers)
    return ToolCallingModel(script=lambda messages: remaining.pop(0))


@MODES
def test_tool_message_contains_cited_text_and_sources_with_the_answer_as_artifact(
    mode: str,
) -> None:
    message = call(SHOP, ABOUT_P1, mode)
    assert isinstance(message, ToolMessage)
    assert "8 GB, says nobody of P1 [E1]" in message.text
    assert message.text.endswith("Sources:\n[E1] manual:3")
    answer = Answer.from_json(message.artifact)
    assert (answer.citations, answer.steps[0]["status"]) == (["E1"], "done")


def test_tool_schema_lists_question_and_context_and_requires_the_question() -> None:
    schema = SHOP.tool_call_schema.model_json_schema()  # type: ignore[union-attr]
    assert list(schema["properties"]) == ["question", "context"]
    assert schema["required"] == ["question"]
    assert SHOP.description == "Knows the shop's products and orders."


def test_tool_with_takes_context_false_ignores_a_context_from_the_model() -> None:
    shop = as_tool(GRAPH, "ask", "Knows.", takes_context=False)
    assert list(shop.args) == ["question"]
    message = call(shop, ABOUT_P1)
    assert "The context of this request has no product_id" in message.text


@MODES
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"question": ""}, "The question is empty. Ask something."),
        ({"question": "x" * 9000}, "Shorten it"),
        ({"question": QUESTION, "context": {"a": float("nan")}}, "context is not a JSON object"),
        ({}, "question: Field required. Give the question as a text."),
        ({"question": ["no", "text"]}, "question: Input should be a valid string"),
    ],
)
def test_tool_returns_an_error_message_for_invalid_arguments(
    mode: str, arguments: dict[str, Any], expected: str
) -> None:
    message = call(SHOP, arguments, mode)
    assert message.status == "error"
    assert expected in message.text


class FailingGenerator:
    """A generator that raises an error."""

    name = "breaks"

    def generate(self, request: Any) -> Any:
        raise RuntimeError("api_key=sk-1234567890 was refused")

    async def agenerate(self, request: Any) -> Any:
        return self.generate(request)


@MODES
def test_tool_reports_a_failure_of_the_generator_without_secrets(mode: str) -> None:
    failing_tool = as_tool(graph_of([], "s1 = no_evidence()", FailingGenerator()), "ask", "Knows.")  # type: ignore[arg-type]
    message = call(failing_tool, {"question": QUESTION}, mode)
    assert message.status == "error"
    assert message.text.startswith("ask could not answer. RuntimeError")
    assert "sk-1234567890" not in message.text


def ask_agent(mode: str, agent: Any, **options: Any) -> list[Any]:
    inputs = {"messages": [("user", QUESTION)]}
    if mode == "sync":
        return list(agent.invoke(inputs, CONFIG, **options)["messages"])
    return list(asyncio.run(agent.ainvoke(inputs, CONFIG, **options))["messages"])


@MODES
def test_agent_calls_the_tool_reads_its_text_and_answers(mode: str) -> None:
    model = script(calls({"question": "memory of P1?", "context": {"product_id": "P1"}}), "8 GB.")
    messages = ask_agent(mode, create_agent(model, [SHOP]))
    assert [message.type for message in messages] == ["human", "ai", "tool", "ai"]
    assert "of P1 [E1]" in model.prompt()
    assert messages[-1].text == "8 GB."


@MODES
def test_agent_continues_after_an_error_of_the_tool(mode: str) -> None:
    model = script(calls({"question": ""}), calls(ABOUT_P1), "Now I know.")
    messages = ask_agent(mode, create_agent(model, [SHOP]))
    tool_messages = [message for message in messages if message.type == "tool"]
    assert [message.status for message in tool_messages] == ["error", "success"]
    assert messages[-1].text == "Now I know."


@MODES
def test_run_context_of_the_agent_reaches_the_tools_of_the_graph(mode: str) -> None:
    agent = create_agent(
        script(calls({"question": QUESTION}), "Done."),
        [as_tool(PLAIN_GRAPH, "ask_the_shop", "Knows.")],
        context_schema=RunContext,
    )
    messages = ask_agent(mode, agent, context=RunContext(scope={"customer": "C1"}))
    assert values(Answer.from_json(messages[2].artifact)) == {"s1": ["8 GB, says C1 of None"]}


def test_tool_uses_the_run_context_that_it_was_created_with() -> None:
    shop = as_tool(PLAIN_GRAPH, "ask", "Knows.", run_context=RunContext(scope={"customer": "C9"}))
    assert "says C9" in call(shop, {"question": QUESTION}).text


@MODES
def test_parallel_calls_of_the_tool_each_get_their_own_answer(mode: str) -> None:
    arguments = [{"question": QUESTION, "context": {"product_id": f"P{n}"}} for n in range(4)]
    agent = create_agent(script(calls(*arguments), "Done."), [SHOP], checkpointer=InMemorySaver())
    tool_messages = [message for message in ask_agent(mode, agent) if message.type == "tool"]
    assert [message.tool_call_id for message in tool_messages] == ["c0", "c1", "c2", "c3"]
    for number, message in enumerate(tool_messages):
        assert f"of P{number} [E1]" in message.text


@MODES
def test_interrupt_within_the_tool_pauses_the_agent_and_is_resumed_through_it(mode: str) -> None:
    called_steps: list[str] = []

    def counted(arguments: Arguments, context: CallContext) -> str:
        called_steps.append(context.step)
        return "looked up"

    asks = tool("asks", lambda *_: f"the user says {interrupt('which one?')}")
    graph = graph_of([tool("counted", counted), asks], "s1 = counted()\ns2 = asks(a=s1.value)")
    agent = create_agent(
        script(calls({"question": QUESTION}), "Done."),
        [as_tool(graph, "ask_the_shop", "Knows.")],
        checkpointer=InMemorySaver(),
    )
    inputs = {"messages": [("user", QUESTION)]}
    if mode == "sync":
        paused = agent.invoke(inputs, CONFIG)
        state = agent.invoke(Command(resume="the red one"), CONFIG)
    else:
        paused = asyncio.run(agent.ainvoke(inputs, CONFIG))
        state = asyncio.run(agent.ainvoke(Command(resume="the red one"), CONFIG))
    assert {pause.value for pause in paused["__interrupt__"]} == {"which one?"}
    assert "the user says the red one" in state["messages"][2].text
    assert called_steps == ["s1"], "a finished step was repeated"


@MODES
def test_tool_runs_in_a_langgraph_tool_node(mode: str) -> None:
    builder: Any = StateGraph(MessagesState)
    builder.add_node("tools", ToolNode([SHOP]))
    builder.set_entry_point("tools")
    inputs = {"messages": [calls(ABOUT_P1)]}
    graph = builder.compile()
    state = graph.invoke(inputs) if mode == "sync" else asyncio.run(graph.ainvoke(inputs))
    assert "of P1 [E1]" in state["messages"][-1].text


KILLED_SCRIPT = """
import os, signal, sys, time
from pathlib import Path
from langchain.agents import create_agent
from langgraph.checkpoint.sqlite import SqliteSaver
from casewright.graph import as_tool
from tests.graph.helpers import QUESTION, graph_of, tool
from tests.graph.test_as_tool import CONFIG, calls, script

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

plan = "s1 = counted()\\ns2 = kills(a=s1.value)"
graph = graph_of([tool("counted", counted), tool("kills", kills)], plan)
model = script(*([] if resumes else [calls({"question": QUESTION})]), "Done.")
with SqliteSaver.from_conn_string(str(folder / "runs.db")) as saver:
    agent = create_agent(model, [as_tool(graph, "ask_the_shop", "Knows.")], checkpointer=saver)
    inputs = None if resumes else {"messages": [("user", QUESTION)]}
    print(agent.invoke(inputs, CONFIG)["messages"][2].text)
"""


def test_killed_agent_resumes_in_a_new_process_without_repeating_finished_steps(
    tmp_path: Path,
) -> None:
    assert fresh_process(KILLED_SCRIPT, str(tmp_path), "first").returncode == -9
    process = fresh_process(KILLED_SCRIPT, str(tmp_path), "again")
    assert "survived" in process.stdout, process.stderr
    lines = (tmp_path / "calls").read_text().splitlines()
    assert [call.split()[0] for call in lines] == ["s1", "s2", "s2"]
    assert lines[1] == lines[2], "the call key changed"


@MODES
def test_tool_answers_when_it_runs_with_max_concurrency_1(mode: str) -> None:
    config: Any = {"max_concurrency": 1}
    if mode == "sync":
        assert "of P1 [E1]" in SHOP.invoke(ABOUT_P1, config)
    else:
        assert "of P1 [E1]" in asyncio.run(SHOP.ainvoke(ABOUT_P1, config))


class RunRecorder(BaseCallbackHandler):
    def __init__(self) -> None:
        self.runs: dict[Any, tuple[str, Any]] = {}

    def on_tool_start(self, serialized: Any, text: str, *, run_id: Any, **extra: Any) -> None:
        self.runs[run_id] = (extra.get("name") or serialized["name"], extra.get("parent_run_id"))

    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: Any, **extra: Any) -> None:
        self.runs[run_id] = (str(extra.get("name")), extra.get("parent_run_id"))


@MODES
def test_callbacks_see_the_run_of_the_graph_below_the_tool(mode: str) -> None:
    recorder = RunRecorder()
    config: Any = {"callbacks": [recorder], "tags": ["mine"]}
    if mode == "sync":
        SHOP.invoke({"question": QUESTION}, config)
    else:
        asyncio.run(SHOP.ainvoke({"question": QUESTION}, config))
    (parent_id,) = [parent for name, parent in recorder.runs.values() if name == "casewright"]
    assert recorder.runs[parent_id][0] == "ask_the_shop"
