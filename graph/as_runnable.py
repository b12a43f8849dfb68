"""The compiled graph as a LangChain ``Runnable`` from a question to its answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Generic, Literal, TypeVar, cast, overload

from langchain_core.callbacks import adispatch_custom_event, dispatch_custom_event
from langchain_core.runnables import Runnable, RunnableConfig
from typing_extensions import override

from casewright.errors import InputError
from casewright.graph.answer import Answer
from casewright.graph.build import Graph, nested_config
from casewright.graph.state import AskInput, RunContext

Question = str | AskInput
Output = TypeVar("Output", Answer, str)
#: The graph's stream modes: ``custom`` yields events, ``values`` yields the state.
_MODES: Any = ["custom", "values"]


@overload
def as_runnable(
    graph: Graph, output: Literal["answer"] = "answer", *, run_context: RunContext | None = None
) -> AskRunnable[Answer]: ...


@overload
def as_runnable(
    graph: Graph, output: Literal["text"], *, run_context: RunContext | None = None
) -> AskRunnable[str]: ...


def as_runnable(
    graph: Graph,
    output: Literal["answer", "text"] = "answer",
    *,
    run_context: RunContext | None = None,
) -> AskRunnable[Any]:
    """Return the graph as a ``Runnable``, which can be piped, batched, streamed and configured.

    The input is a question, or an ``AskInput`` with context and history.

    Args:
        graph: The graph of ``build_graph``.
        output: ``"answer"`` for ``Answer`` objects; ``"text"`` for their texts, streamed in lines.
        run_context: The context of every run; ``invoke(…, context=RunContext(…))`` overrides it.

    Raise ``InputError`` if ``output`` is another value.
    """
    if output not in ("answer", "text"):
        raise InputError(f"as_runnable has output={output!r}. Give 'answer' or 'text'.")
    return AskRunnable(graph, output, run_context)


class AskRunnable(Runnable[Question, Output], Generic[Output]):
    """The graph as a ``Runnable``; see ``as_runnable``.

    ``bind`` and every method that runs the graph accept ``context=RunContext(…)``. Streaming
    dispatches the run's events as custom events, which ``astream_events`` yields as
    ``on_custom_event``. In ``batch``, ``max_concurrency`` limits how many questions run at once.
    """

    def __init__(
        self, graph: Graph, output: Literal["answer", "text"], run_context: RunContext | None
    ) -> None:
        self._graph = graph
        self._output = output
        self._run_context = run_context

    @property
    @override
    def OutputType(self) -> type[Output]:
        """Type of the output: ``Answer`` or ``str``."""
        return cast("type[Output]", Answer if self._output == "answer" else str)

    @override
    def invoke(
        self, input: Question, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Output:
        """Answer one question.

        Raise ``InputError`` if question, context, history or run context is invalid.
        """

        def run(question: Question, config: RunnableConfig, **kwargs: Any) -> Output:
            arguments, options = self._arguments(question, config, kwargs)
            return self._result(self._graph.invoke(*arguments, **options))

        return self._call_with_config(cast("Any", run), input, config, **kwargs)

    @override
    async def ainvoke(
        self, input: Question, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Output:
        """Answer one question without blocking the event loop."""

        async def run(question: Question, config: RunnableConfig, **kwargs: Any) -> Output:
            arguments, options = self._arguments(question, config, kwargs)
            return self._result(await self._graph.ainvoke(*arguments, **options))

        return await self._acall_with_config(cast("Any", run), input, config, **kwargs)

    @override
    def stream(
        self, input: Question, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[Output]:
        """Yield the ``Answer``, or the lines of its text, as ``output`` of ``as_runnable`` says.

        The text is yielded only after its citations are checked, since a citation of unknown
        evidence could not be removed from a text that is already displayed.
        """
        stream: Any = self._stream_output
        yield from self._transform_stream_with_config(iter([input]), stream, config, **kwargs)

    @override
    async def astream(
        self, input: Question, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Output]:
        """Yield the same as ``stream``, without blocking the event loop."""

        async def inputs() -> AsyncIterator[Question]:
            yield input

        stream: Any = self._astream_output
        async for piece in self._atransform_stream_with_config(inputs(), stream, config, **kwargs):
            yield piece

    def _stream_output(
        self, questions: Iterator[Question], config: RunnableConfig, **kwargs: Any
    ) -> Iterator[Output]:
        """Yield the output for each question; LangChain gives an iterator of one question."""
        for question in questions:
            state: Any = {}
            arguments, options = self._arguments(question, config, kwargs)
            for mode, chunk in self._graph.stream(*arguments, stream_mode=_MODES, **options):
                if mode == "custom":
                    dispatch_custom_event(chunk["event"], chunk, config=config)
                else:
                    state = chunk
            yield from self._output_pieces(state)

    async def _astream_output(
        self, questions: AsyncIterator[Question], config: RunnableConfig, **kwargs: Any
    ) -> AsyncIterator[Output]:
        async for question in questions:
            state: Any = {}
            arguments, options = self._arguments(question, config, kwargs)
            async for mode, chunk in self._graph.astream(*arguments, stream_mode=_MODES, **options):
                if mode == "custom":
                    await adispatch_custom_event(chunk["event"], chunk, config=config)
                else:
                    state = chunk
            for piece in self._output_pieces(state):
                yield piece

    def _arguments(
        self, question: Any, config: RunnableConfig, kwargs: dict[str, Any]
    ) -> tuple[tuple[AskInput, RunnableConfig], dict[str, Any]]:
        """Return the positional and the keyword arguments of a run of the graph."""
        if isinstance(question, str):
            question = {"question": question}
        if not isinstance(question, Mapping):
            raise InputError(
                f"The question has the type {type(question).__name__}. Give a text, or "
                '{"question": "…", "context": {…}, "history": […]}.'
            )
        options = kwargs if self._run_context is None else {"context": self._run_context, **kwargs}
        return (cast("AskInput", dict(question)), nested_config(config)), options

    def _result(self, state: Any) -> Output:
        answer = Answer.from_state(state)
        return cast("Output", answer if self._output == "answer" else answer.text)

    def _output_pieces(self, state: Any) -> list[Output]:
        result = self._result(state)
        return result.splitlines(keepends=True) if isinstance(result, str) else [result]
