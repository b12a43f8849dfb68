"""The compiled graph as a node of another ``StateGraph``, whose state has other keys."""

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
Read = str | Callable[[Any], Any]
#: A key for the answer's text; keys with fields of the answer, or functions of it; or a function
#: that makes the whole update.
Write = str | Mapping[str, str | Callable[[Answer], Any]] | Callable[[Answer], Mapping[str, Any]]


def as_node(
    graph: Graph,
    *,
    question: Read = "question",
    context: Read | None = None,
    history: Read | None = None,
    answer: Write = "answer",
    run_context: Callable[[Any], RunContext] | None = None,
) -> Runnable[Any, dict[str, Any]]:
    """Make a node that asks the graph, for ``StateGraph.add_node``.

    The parent's checkpointer keeps every finished step, and its ``Command(resume=…)`` reaches a
    tool that asks the user something. Unless the parent was run with a ``durability`` of its own,
    a step counts as finished once it is kept.

    Args:
        graph: The graph of ``build_graph``, without a checkpointer of its own.
        question: A key of the parent's state with the question, or a function of the state.
        context: The same for the context; none by default.
        history: The same for earlier turns; none by default.
        answer: A key for the answer's text; or keys with fields of ``Answer`` by name, or functions
            of it, ``{"reply": "text", "sources": "citations"}``; or a function of the ``Answer``
            that returns the parent's update.
        run_context: Makes this run's ``RunContext`` of the parent's own context. By default, the
            values of the parent's context under the names of ``RunContext`` are handed on.

    Raises:
        InputError: ``answer`` names no field of ``Answer``. When it runs: the state does not have a
            named key, or its value is unusable.
    """
    update = _writer(answer)
    reads = {"question": question, "context": context, "history": history}

    def inputs(state: Any) -> AskInput:
        values = {
            name: _read(name, read, state) for name, read in reads.items() if read is not None
        }
        # A channel without a write holds None, which is neither a context nor a history.
        return cast(
            "AskInput", {n: v for n, v in values.items() if v is not None or n == "question"}
        )

    def options() -> dict[str, Any]:
        return {} if run_context is None else {"context": run_context(get_runtime().context)}

    def blocking(state: Any, config: RunnableConfig) -> dict[str, Any]:
        output = graph.invoke(inputs(state), nested_config(config), **options())
        return update(Answer.from_state(output))

    async def awaiting(state: Any, config: RunnableConfig) -> dict[str, Any]:
        output = await graph.ainvoke(inputs(state), nested_config(config), **options())
        return update(Answer.from_state(output))

    return RunnableLambda(blocking, awaiting, name="casewright")


def _read(name: str, read: Read, state: Any) -> Any:
    if not isinstance(read, str):
        return read(state)
    values = state if isinstance(state, Mapping) else getattr(state, "__dict__", {})
    if read in values or name != "question":
        return values.get(read)
    raise InputError(
        f"The parent's state has no {read!r}, where as_node reads the question. It has "
        f"{sorted(map(str, values))}. Name its key: as_node(graph, question=…)."
    )


def _writer(answer: Write) -> Callable[[Answer], dict[str, Any]]:
    if isinstance(answer, str):
        return lambda output: {answer: output.text}
    if not isinstance(answer, Mapping):
        return lambda output: dict(answer(output))
    fields = {read for read in answer.values() if isinstance(read, str)}
    if unknown := sorted(fields - set(Answer.__slots__)):
        raise InputError(
            f"as_node is to write {unknown} of an Answer, which has {', '.join(Answer.__slots__)}. "
            "Name one of these, or give a function of the Answer."
        )
    return lambda output: {
        key: output.to_json()[read] if isinstance(read, str) else read(output)
        for key, read in answer.items()
    }
