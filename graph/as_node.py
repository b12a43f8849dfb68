"""The compiled graph as a node of another ``StateGraph``, whose state has other keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.runtime import get_runtime

from casewright.errors import InputError
from casewright.graph.answer import Answer
from casewright.graph.build import Graph
from casewright.graph.nested import nested_config
from casewright.graph.state import AskInput, RunContext

#: A key of the parent's state, or what reads it.
Read = str | Callable[[Any], Any]
#: A key for the answer's text; keys with the answer's fields, or what makes one of it; or what
#: makes the whole update.
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
        graph: What ``build_graph`` made, without a checkpointer of its own.
        question: Where the question is: a key of the parent's state, or a function of the state.
        context: The same for the request's context; nothing by default.
        history: The same for the earlier turns; nothing by default.
        answer: Where the answer goes: a key that is given its text; or keys with fields of
            ``Answer`` by name, or functions of it, ``{"reply": "text", "sources": "citations"}``;
            or a function of the ``Answer`` that returns the parent's update.
        run_context: Makes this run's ``RunContext`` of the parent's own context. Without it, what
            the parent's context has under the names of ``RunContext`` is handed on.

    Raises:
        InputError: ``answer`` names what an ``Answer`` does not have. When it runs: the state does
            not have a key that was named, or what it has there is unusable.
    """
    written = _writer(answer)
    reads = {"question": question, "context": context, "history": history}

    def asked(state: Any) -> AskInput:
        given = {name: _read(name, read, state) for name, read in reads.items() if read is not None}
        # A channel that nobody has written holds None, which is no context and no history.
        return cast(
            "AskInput", {n: v for n, v in given.items() if v is not None or n == "question"}
        )

    def chosen() -> dict[str, Any]:
        return {} if run_context is None else {"context": run_context(get_runtime().context)}

    def blocking(state: Any, config: RunnableConfig) -> dict[str, Any]:
        returned = graph.invoke(asked(state), nested_config(config), **chosen())
        return written(Answer.from_state(returned))

    async def awaiting(state: Any, config: RunnableConfig) -> dict[str, Any]:
        returned = await graph.ainvoke(asked(state), nested_config(config), **chosen())
        return written(Answer.from_state(returned))

    return RunnableLambda(blocking, awaiting, name="casewright")


def _read(name: str, read: Read, state: Any) -> Any:
    if not isinstance(read, str):
        return read(state)
    found = state if isinstance(state, Mapping) else getattr(state, "__dict__", {})
    if read in found:
        return found[read]
    if name != "question":
        return None
    raise InputError(
        f"The parent's state has no {read!r}, where as_node reads the question. It has "
        f"{sorted(map(str, found))}. Name its key: as_node(graph, question=…)."
    )


def _writer(answer: Write) -> Callable[[Answer], dict[str, Any]]:
    if isinstance(answer, str):
        return lambda made: {answer: made.text}
    if not isinstance(answer, Mapping):
        return lambda made: dict(answer(made))
    fields = {read for read in answer.values() if isinstance(read, str)}
    if unknown := sorted(fields - set(Answer.__slots__)):
        raise InputError(
            f"as_node is to write {unknown} of an Answer, which has {', '.join(Answer.__slots__)}. "
            "Name one of these, or give a function of the Answer."
        )
    return lambda made: {
        key: made.to_json()[read] if isinstance(read, str) else read(made)
        for key, read in answer.items()
    }
