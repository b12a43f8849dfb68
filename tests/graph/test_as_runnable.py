"""The compiled graph as a ``Runnable`` from a question to its answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import interrupt

from casewright.errors import CasewrightError, InputError
from casewright.graph import Answer, RunContext, as_runnable
from casewright.tools import CallContext
from tests.graph.helpers import QUESTION, Arguments, graph_of, tool

MODES = pytest.mark.parametrize("mode", ["sync", "async"])


def echo(arguments: Arguments, context: CallContext) -> str:
    return f"{context.question} by {context.scope.get('customer', 'nobody')}"


PLAN = "s1 = echo()\ns2 = echo(a=s1.value)"
GRAPH = graph_of([tool("echo", echo)], PLAN)
ANSWER = as_runnable(GRAPH)
TEXT = as_runnable(GRAPH, "text")


def invoke(mode: str, runnable: Any, question: Any, config: Any = None, **options: Any) -> Any:
    if mode == "sync":
        return runnable.invoke(question, config, **options)
    return asyncio.run(runnable.ainvoke(question, config, **options))


def stream_pieces(mode: str, runnable: Any, question: Any, **options: Any) -> list[Any]:
    async def collect() -> list[Any]:
        return [piece async for piece in runnable.astream(question, **options)]

    return list(runnable.stream(question, **options)) if mode == "sync" else asyncio.run(collect())


def batch(mode: str, runnable: Any, inputs: Any, config: Any = None, **options: Any) -> list[Any]:
    if mode == "sync":
        return list(runnable.batch(inputs, config, **options))
    return list(asyncio.run(runnable.abatch(inputs, config, **options)))


@MODES
@pytest.mark.parametrize("question", [QUESTION, {"question": QUESTION, "context": {"page": "P1"}}])
def test_runnable_returns_the_answer_or_its_text_for_a_question(mode: str, question: Any) -> None:
    answer = invoke(mode, ANSWER, question)
    assert isinstance(answer, Answer)
    assert f"{QUESTION} by nobody" in answer.text
    assert invoke(mode, TEXT, question) == answer.text


@MODES
@pytest.mark.parametrize("question", ["", 7, None, {"question": QUESTION, "context": []}, {}])
def test_runnable_refuses_an_invalid_question(mode: str, question: Any) -> None:
    for runnable in (ANSWER, TEXT):
        with pytest.raises(InputError):
            invoke(mode, runnable, question)
        with pytest.raises(InputError):
            stream_pieces(mode, runnable, question)


def test_runnable_outputs_an_answer_or_text_and_refuses_other_formats() -> None:
    assert (ANSWER.InputType, ANSWER.OutputType, TEXT.OutputType) == (TEXT.InputType, Answer, str)
    with pytest.raises(InputError, match="'answer' or 'text'"):
        as_runnable(GRAPH, "json")  # type: ignore[call-overload]


@MODES
def test_runnable_streams_pieces_that_join_to_the_answer_text(mode: str) -> None:
    pieces = stream_pieces(mode, TEXT, QUESTION)
    assert len(pieces) > 1
    assert "".join(pieces) == invoke(mode, TEXT, QUESTION)


@MODES
def test_runnable_streams_an_answer_object_in_one_piece(mode: str) -> None:
    (answer,) = stream_pieces(mode, ANSWER, QUESTION)
    assert answer.text == invoke(mode, TEXT, QUESTION)


def test_astream_events_contains_the_events_of_the_run() -> None:
    async def collect() -> list[Any]:
        return [event async for event in TEXT.astream_events(QUESTION, version="v2")]

    events = asyncio.run(collect())
    names = [event["name"] for event in events if event["event"] == "on_custom_event"]
    steps = ["step_started", "step_ended"]
    assert names == ["plan", *steps, *steps, "answer"]
    run_events = [event for event in events if event["name"] == "AskRunnable"]
    assert run_events[-1]["data"]["output"] == invoke("sync", TEXT, QUESTION)


class EventHandler(BaseCallbackHandler):
    def __init__(self) -> None:
        self.names: list[str] = []

    def on_custom_event(self, name: str, data: Any, **options: Any) -> None:
        self.names.append(name)


@MODES
def test_callbacks_receive_the_events_of_a_streamed_run(mode: str) -> None:
    handler = EventHandler()
    stream_pieces(mode, ANSWER.with_config(callbacks=[handler]), QUESTION)
    assert handler.names[0] == "plan"
    assert handler.names[-1] == "answer"


@MODES
@pytest.mark.parametrize("limit", [None, 1, 2])
def test_batch_returns_answers_in_order_with_any_max_concurrency(
    mode: str, limit: int | None
) -> None:
    questions = [f"question {n}" for n in range(9)]
    config = None if limit is None else {"max_concurrency": limit}
    answers = batch(mode, ANSWER, questions, config)
    for question, answer in zip(questions, answers, strict=True):
        assert f"{question} by" in answer.text
        assert [step["status"] for step in answer.steps] == ["done", "done"]
    assert len({answer.run_id for answer in answers}) == len(questions)


@MODES
def test_failed_question_of_a_batch_does_not_affect_the_others(mode: str) -> None:
    first, failed, last = batch(mode, TEXT, ["one", "", "three"], return_exceptions=True)
    assert "one by nobody" in first
    assert "three by nobody" in last
    assert isinstance(failed, InputError)
    with pytest.raises(InputError):
        batch(mode, TEXT, ["one", "", "three"])


def test_batch_as_completed_returns_every_answer_and_failure() -> None:
    results = dict(TEXT.batch_as_completed(["one", "two", ""], return_exceptions=True))
    assert "two by nobody" in str(results[1])
    assert isinstance(results[2], InputError)


@MODES
def test_run_context_of_a_call_replaces_that_of_the_runnable(mode: str) -> None:
    c1, c2 = (RunContext(scope={"customer": name}) for name in ("C1", "C2"))
    runnable = as_runnable(GRAPH, "text", run_context=c1)
    assert "by C1" in invoke(mode, runnable, QUESTION)
    assert "by C2" in invoke(mode, runnable, QUESTION, context=c2)
    assert "by C2" in invoke(mode, runnable.bind(context=c2), QUESTION)
    assert "by C2" in "".join(stream_pieces(mode, runnable, QUESTION, context=c2))
    assert all("by C2" in text for text in batch(mode, runnable, ["one", "two"], context=c2))


@MODES
def test_runnable_works_within_a_chain_of_runnables(mode: str) -> None:
    chain: Any = PromptTemplate.from_template("memory of {thing}?") | RunnableLambda(
        lambda prompt: prompt.to_string()
    )
    assert "memory of P1? by" in invoke(mode, chain | TEXT, {"thing": "P1"})
    counted = chain | ANSWER | (lambda answer: len(answer.steps))
    assert invoke(mode, counted, {"thing": "P1"}) == 2
    assert stream_pieces(mode, counted, {"thing": "P1"}) == [2]
    assigned = RunnablePassthrough.assign(answer=(lambda inputs: inputs["q"]) | TEXT)
    assert "tea by" in invoke(mode, assigned, {"q": "tea"})["answer"]


@MODES
def test_chain_streams_the_pieces_of_the_runnable(mode: str) -> None:
    def shout(pieces: Any) -> Any:
        for piece in pieces:
            yield piece.upper()

    async def ashout(pieces: Any) -> Any:
        async for piece in pieces:
            yield piece.upper()

    pieces = stream_pieces(mode, TEXT | (shout if mode == "sync" else ashout), QUESTION)
    assert len(pieces) > 1


@MODES
def test_runnable_accepts_config_and_fallbacks(mode: str) -> None:
    configured = TEXT.with_config(tags=["mine"], run_name="asked", max_concurrency=1)
    assert "by nobody" in invoke(mode, configured, QUESTION)
    with_fallback = TEXT.with_fallbacks([RunnableLambda(lambda question: "ask something")])
    assert invoke(mode, with_fallback, "") == "ask something"


@MODES
def test_runnable_error_on_an_interrupt_names_the_resume_command(mode: str) -> None:
    asks = tool("asks", lambda *_: str(interrupt("which one?")))
    graph = graph_of([asks], "s1 = asks()", checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "one"}}
    with pytest.raises(CasewrightError, match=r"which one.*Command\(resume"):
        invoke(mode, as_runnable(graph), QUESTION, config)
