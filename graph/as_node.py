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

#: A key of the parent's state, or a function of this state.
StateReader = str | Callable[[Any], Any]
#: How an answer becomes an update of the parent's state; see ``answer`` of ``as_node``.
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

    The parent's checkpointer saves every finished step. A step counts as finished once it is saved,
    unless the parent run sets a ``durability``. The parent's ``Command(resume=…)`` reaches a tool
    that interrupts to ask the user.

    Args:
        graph: The graph of ``build_graph``, without a checkpointer of its own.
        question: A key of the parent's state with the question, or a function of the state.
        context: A key or function for the context; no context by default.
        history: A key or function for earlier turns; no turns by default.
        answer: A key for the answer's text; or a mapping of keys to names of ``Answer`` fields or
            to functions of the ``Answer``, such as ``{"reply": "text", "sources": "citations"}``;
            or a function of the ``Answer`` that returns the parent's update.
        run_context: A function that makes the graph's ``RunContext`` from the parent's context. By
            default, the graph gets the fields of the parent's context that ``RunContext`` has too.

    Raise ``InputError`` if ``answer`` names an unknown field. The node raises
    ``InputError`` if the state lacks the question's key, or if a value is invalid.
    """
    answer_update = _update_function(answer)
    readers = {"question": question, "context": context, "history": history}

    def ask_input(state: Any) -> AskInput:
        values = {n: _read(n, reader, state) for n, reader in readers.items() if reader is not None}
        # A key that no node has written holds None, so None is left out, except as the question.
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


def _read(parameter: str, key_or_function: StateReader, state: Any) -> Any:
    if not isinstance(key_or_function, str):
        return key_or_function(state)
    values = state if isinstance(state, Mapping) else getattr(state, "__dict__", {})
    if key_or_function in values or parameter != "question":
        return values.get(key_or_function)
    raise InputError(
        f"The parent's state has no key {key_or_function!r} for as_node's question. The "
        f"keys are {sorted(map(str, values))}. Give the question's key: as_node(graph, question=…)."
    )


def _update_function(writer: AnswerWriter) -> Callable[[Answer], dict[str, Any]]:
    if isinstance(writer, str):
        return lambda answer: {writer: answer.text}
    if not isinstance(writer, Mapping):
        return lambda answer: dict(writer(answer))
    fields = {field for field in writer.values() if isinstance(field, str)}
    if unknown := sorted(fields - set(Answer.__slots__)):
        raise InputError(
            f"answer= of as_node names {unknown}, but the fields of an Answer are "
            f"{', '.join(Answer.__slots__)}. Name one of these, or give a function of the Answer."
        )
    return lambda answer: {
        key: answer.to_json()[field] if isinstance(field, str) else field(answer)
        for key, field in writer.items()
    }
