"""The compiled graph as a LangChain ``Runnable`` from a question to its answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Generic, Literal, TypeVar, cast, overload

from langchain_core.callbacks import adispatch_custom_event, dispatch_custom_event
from langchain_core.runnables import Runnable, RunnableConfig
from typing_extensions import override

from casewright.errors import InputError
from casewright.graph.answer import Answer
from casewright.graph.build import Graph
from casewright.graph.nested import nested_config
from casewright.graph.state import AskInput, RunContext

Asked = str | AskInput
Made = TypeVar("Made", Answer, str)
_STREAMS: Any = ["custom", "values"]


@overload
def as_runnable(
    graph: Graph,
    output: Literal["answer"] = "answer",
    *,
    run_context: RunContext | None = None,
) -> AskRunnable[Answer]: ...


@overload
def as_runnable(
    graph: Graph,
    output: Literal["text"],
    *,
    run_context: RunContext | None = None,
) -> AskRunnable[str]: ...


def as_runnable(
    graph: Graph,
    output: Literal["answer", "text"] = "answer",
    *,
    run_context: RunContext | None = None,
) -> AskRunnable[Any]:
    """Make a ``Runnable`` of the graph, to be piped, batched, streamed and configured.

    Its input is a question, or an ``AskInput`` with context and history.

    Args:
        graph: What ``build_graph`` made.
        output: ``"answer"`` for ``Answer`` objects; ``"text"`` for their texts, which are streamed
            in pieces that add up to the text.
        run_context: Of every run; ``invoke(…, context=RunContext(…))`` gives another one.

    Raises:
        InputError: There is no such output.
    """
    if output not in ("answer", "text"):
        raise InputError(f"as_runnable was asked for {output!r}. Ask for 'answer' or 'text'.")
    return AskRunnable(graph, output, run_context)


class AskRunnable(Runnable[Asked, Made], Generic[Made]):
    """Asks the graph; see ``as_runnable``.

    All of LangChain's ways to call it take ``context=RunContext(…)``, and so does ``bind``. While
    it is streamed, the run's events are dispatched as custom events, which ``astream_events``
    yields as ``on_custom_event``. In ``batch``, ``max_concurrency`` bounds the questions that are
    answered at a time.
    """

    def __init__(
        self,
        graph: Graph,
        output: Literal["answer", "text"],
        run_context: RunContext | None,
    ) -> None:
        self._graph = graph
        self._output = output
        self._run_context = run_context

    @property
    @override
    def InputType(self) -> Any:
        """A question, or one with context and history."""
        return Asked

    @property
    @override
    def OutputType(self) -> type[Made]:
        """``Answer`` or ``str``."""
        return cast("type[Made]", Answer if self._output == "answer" else str)

    @override
    def invoke(self, input: Asked, config: RunnableConfig | None = None, **more: Any) -> Made:
        """Answer one question.

        Raises:
            InputError: Question, context, history or run context are unusable.
        """

        def run(asked: Asked, config: RunnableConfig, **more: Any) -> Made:
            return self._made(
                self._graph.invoke(_input(asked), nested_config(config), **self._kept(more))
            )

        return self._call_with_config(cast("Any", run), input, config, **more)

    @override
    async def ainvoke(
        self, input: Asked, config: RunnableConfig | None = None, **more: Any
    ) -> Made:
        """The same, without blocking the event loop."""

        async def run(asked: Asked, config: RunnableConfig, **more: Any) -> Made:
            given = _input(asked)
            return self._made(
                await self._graph.ainvoke(given, nested_config(config), **self._kept(more))
            )

        return await self._acall_with_config(cast("Any", run), input, config, **more)

    @override
    def stream(
        self, input: Asked, config: RunnableConfig | None = None, **more: Any
    ) -> Iterator[Made]:
        """Yield the answer: its text line by line, or the one ``Answer``.

        No text is yielded before all of it was checked: a citation of what was not found must not
        be shown first and taken back later.
        """
        pieces: Any = self._pieces
        yield from self._transform_stream_with_config(iter([input]), pieces, config, **more)

    @override
    async def astream(
        self, input: Asked, config: RunnableConfig | None = None, **more: Any
    ) -> AsyncIterator[Made]:
        """The same, without blocking the event loop."""

        async def one() -> AsyncIterator[Asked]:
            yield input

        pieces: Any = self._apieces
        async for piece in self._atransform_stream_with_config(one(), pieces, config, **more):
            yield piece

    def _pieces(
        self, inputs: Iterator[Asked], config: RunnableConfig, **more: Any
    ) -> Iterator[Made]:
        for asked in inputs:
            last: Any = {}
            for mode, chunk in self._graph.stream(
                _input(asked), nested_config(config), stream_mode=_STREAMS, **self._kept(more)
            ):
                if mode == "custom":
                    dispatch_custom_event(chunk["event"], chunk, config=config)
                else:
                    last = chunk
            yield from self._cut(last)

    async def _apieces(
        self, inputs: AsyncIterator[Asked], config: RunnableConfig, **more: Any
    ) -> AsyncIterator[Made]:
        async for asked in inputs:
            last: Any = {}
            async for mode, chunk in self._graph.astream(
                _input(asked), nested_config(config), stream_mode=_STREAMS, **self._kept(more)
            ):
                if mode == "custom":
                    await adispatch_custom_event(chunk["event"], chunk, config=config)
                else:
                    last = chunk
            for piece in self._cut(last):
                yield piece

    def _kept(self, more: dict[str, Any]) -> dict[str, Any]:
        return more if self._run_context is None else {"context": self._run_context, **more}

    def _made(self, state: Any) -> Made:
        answer = Answer.from_state(state)
        return cast("Made", answer if self._output == "answer" else answer.text)

    def _cut(self, state: Any) -> list[Made]:
        made = self._made(state)
        return made.splitlines(keepends=True) if isinstance(made, str) else [made]


def _input(asked: Any) -> AskInput:
    if isinstance(asked, str):
        return {"question": asked}
    if isinstance(asked, Mapping):
        return cast("AskInput", dict(asked))
    raise InputError(
        f"The question is {type(asked).__name__}. Give a text, or "
        '{"question": "…", "context": {…}, "history": […]}.'
    )
