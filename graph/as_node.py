"""The compiled graph as a node of a parent ``StateGraph`` with its own state keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.runtime import get_runtime

from casewright.errors import InputError
from casewright.graph.answer import Answer
from casewright.graph.build import Graph, nested_config
from casewright.graph.state import AskInput, RunContext

#: A key of the parent's state, or a function that reads it.
StateReader = str | Callable[[Any], Any]
#: A key for the text, a mapping of keys to fields or functions, or a function for the whole update.
AnswerWriter = (
    str | Mapping[str, str | Callable[[Answer], Any]] | Callable[[Answer], Mapping[str, Any]]
)


def as_node(
    graph: Graph,
    *,
    question: StateReader = "question",
    context: StateReader | None = None,
    history: StateReader | None = None,
    answer: AnswerWriter = "answer",
    run_context: Callable[[Any], RunContext] | None = None,
) -> Runnable[Any, dict[str, Any]]:
    """Return a node for ``StateGraph.add_node`` that runs the graph.

    The parent's checkpointer saves every finished step, and its ``Command(resume=…)`` reaches a
    tool that interrupts to ask the user. Unless the parent run sets a ``durability``, a step counts
    as finished once it is saved.

    Args:
        graph: The graph of ``build_graph``, without a checkpointer of its own.
        question: A key of the parent's state with the question, or a function of the state.
        context: A key or function for the context; no context by default.
        history: A key or function for earlier turns; no turns by default.
        answer: A key for the answer's text; or a mapping of keys to names of ``Answer`` fields or
            to functions of the ``Answer``, such as ``{"reply": "text", "sources": "citations"}``;
            or a function of the ``Answer`` that returns the parent's update.
        run_context: A function from the parent's context to this run's ``RunContext``. By default,
            the run gets the fields of the parent's context that ``RunContext`` has.

    Raise ``InputError`` if ``answer`` names an unknown field. The node raises
    ``InputError`` if the state lacks a named key or a value is invalid.
    """
    answer_update = _update_function(answer)
    readers = {"question": question, "context": context, "history": history}

    def ask_input(state: Any) -> AskInput:
        values = {n: _read(n, reader, state) for n, reader in readers.items() if reader is not None}
        # A key of the parent's state that no node has written holds None.
        given = {n: value for n, value in values.items() if value is not None or n == "question"}
        return cast("AskInput", given)

    def run_options() -> dict[str, Any]:
        return {} if run_context is None else {"context": run_context(get_runtime().context)}

    def invoke(state: Any, config: RunnableConfig) -> dict[str, Any]:
        output = graph.invoke(ask_input(state), nested_config(config), **run_options())
        return answer_update(Answer.from_state(output))

    async def ainvoke(state: Any, config: RunnableConfig) -> dict[str, Any]:
        output = await graph.ainvoke(ask_input(state), nested_config(config), **run_options())
        return answer_update(Answer.from_state(output))

    return RunnableLambda(invoke, ainvoke, name="casewright")


def _read(name: str, key_or_function: StateReader, state: Any) -> Any:
    if not isinstance(key_or_function, str):
        return key_or_function(state)
    values = state if isinstance(state, Mapping) else getattr(state, "__dict__", {})
    if key_or_function in values or name != "question":
        return values.get(key_or_function)
    raise InputError(
        f"The parent's state has no key {key_or_function!r} for as_node's question. It has "
        f"{sorted(map(str, values))}. Name its key: as_node(graph, question=…)."
    )


def _update_function(answer: AnswerWriter) -> Callable[[Answer], dict[str, Any]]:
    if isinstance(answer, str):
        return lambda output: {answer: output.text}
    if not isinstance(answer, Mapping):
        return lambda output: dict(answer(output))
    fields = {field for field in answer.values() if isinstance(field, str)}
    if unknown := sorted(fields - set(Answer.__slots__)):
        raise InputError(
            f"answer= of as_node names {unknown}, but the fields of an Answer are "
            f"{', '.join(Answer.__slots__)}. Name one of these, or give a function of the Answer."
        )
    return lambda output: {
        key: output.to_json()[field] if isinstance(field, str) else field(output)
        for key, field in answer.items()
    }
