"""The answer quotes the evidence when the chat model fails, hangs or returns nothing."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest
from langchain_core.messages import BaseMessage

from casewright.graph import ChatGenerator, GenerationRequest, Generator
from tests.graph.helpers import (
    QUESTION,
    Ask,
    ScriptedModel,
    evidence,
    fresh_process,
    graph_of,
    tool,
)


def fail(messages: list[BaseMessage]) -> str:
    raise ConnectionError("lost with token=sk-abcdefgh1234")


@pytest.mark.parametrize(
    ("script", "reason"),
    [(fail, "ConnectionError: lost"), ("  \n", "empty")],
    ids=["fails", "empty"],
)
def test_failing_or_empty_chat_model_is_replaced_by_quotations_with_the_reason(
    ask: Ask, script: Any, reason: str
) -> None:
    generator = ChatGenerator(ScriptedModel(script=script))
    answer = ask(graph_of([tool("t", lambda *_: ["one", "two"])], "s1 = t()", generator))
    assert answer.text.splitlines() == ["- one [E1]", "- two [E2]"]
    assert answer.citations == ["E1", "E2"]
    assert answer.generator.startswith("extractive (after chat:ScriptedModel failed: ")
    assert reason in answer.generator
    assert "abcdefgh1234" not in answer.generator


HANGING_SCRIPT = """
import asyncio, sys, threading, time
from casewright.graph import Answer, ChatGenerator
from tests.graph.helpers import QUESTION, ScriptedModel, graph_of, tool

def hangs(messages):
    threading.Event().wait()

generator = ChatGenerator(ScriptedModel(script=hangs), seconds=0.3)
graph = graph_of([tool("t", lambda *_: "one")], "s1 = t()", generator)
inputs = {"question": QUESTION}

async def run_awaited():
    start = time.perf_counter()
    state = await graph.ainvoke(inputs)
    return state, time.perf_counter() - start

if sys.argv[1] == "sync":
    start = time.perf_counter()
    state, took = graph.invoke(inputs), time.perf_counter() - start
    print(took < 1.5, "0.3 s" in state["answer"]["generator"], state["answer"]["citations"])
else:
    async def main():
        state, took = await run_awaited()
        print(took < 1.5, "0.3 s" in state["answer"]["generator"], state["answer"]["citations"])
        sys.stdout.flush()
    asyncio.run(main())
"""


def test_hanging_chat_model_delays_neither_the_answer_nor_the_process_exit(ask: Ask) -> None:
    process = fresh_process(HANGING_SCRIPT, ask.mode, seconds=8)
    assert process.returncode == 0, process.stderr
    assert process.stdout.strip() == "True True ['E1']"


def test_chat_model_that_awaits_forever_is_replaced_by_quotations_at_the_deadline() -> None:
    class Awaits(ScriptedModel):
        async def _agenerate(self, *args: Any, **options: Any) -> Any:
            await asyncio.sleep(60)

    request = GenerationRequest(QUESTION, [evidence(1, "one")])
    generator: Generator = ChatGenerator(Awaits(script=""), seconds=0.2)
    start = time.perf_counter()
    generation = asyncio.run(generator.agenerate(request))
    assert time.perf_counter() - start < 5.0
    assert "it gave no answer within 0.2 s" in generation.generator
    assert "- one [E1]" in generation.text


def test_slow_chat_model_does_not_block_the_event_loop() -> None:
    release = threading.Event()

    async def run_both() -> None:
        generator = ChatGenerator(ScriptedModel(script=lambda m: str(release.wait(5))))
        task = asyncio.ensure_future(generator.agenerate(GenerationRequest(QUESTION, [])))
        await asyncio.sleep(0.05)
        assert not task.done()
        release.set()
        assert (await task).text == "True", "the model blocked the event loop"

    asyncio.run(run_both())
