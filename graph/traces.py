"""Tracing of a graph's nodes: metadata for callback handlers, and OpenTelemetry spans.

Every run within the graph has the tag ``casewright``, and metadata about run, plan and step. The
keys have a prefix, since the program that uses the graph may add metadata of its own. The metadata
contains the names of the scope's fields, but not their values, since these identify the user. It
contains nothing of the context. The inputs and outputs that LangGraph passes to handlers do contain
question, context and answer. ``stores.spans`` documents the content of the spans.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from inspect import signature
from typing import Any, TypeVar, cast
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.runnables.config import merge_configs, set_config_context
from langgraph.config import get_config

from casewright.graph.call import Call
from casewright.graph.generator import Generation, GenerationRequest, Generator
from casewright.graph.state import run_context
from casewright.planner import Planner, PlanRequest, PlanResult
from casewright.stores import spans
from casewright.tools.body import Body, Work, arun, run

#: Name of the graph's run, and tag of all runs within it.
NAME = TAG = "casewright"
#: Keys of the metadata.
RUN, PLANNER, PLAN = "casewright_run_id", "casewright_planner", "casewright_plan"
SCOPE, STEP, TOOL = "casewright_scope", "casewright_step", "casewright_tool"

Task = TypeVar("Task")
#: The default of look-ups in ``RunSpans._roots``: no graph run, and no span.
_NO_SPAN: tuple[Any, Any] = (None, None)
_ONE_ARGUMENT = signature(lambda state: state)


class BodyNode(RunnableLambda[Any, Any]):
    """A node that runs a ``Body``, blocking or async; the body returns the update of the state."""

    def __init__(self, body: Callable[[Any], Body[dict[str, Any]]]) -> None:
        def call(state: Any) -> dict[str, Any]:
            return run(body(state))

        async def acall(state: Any) -> dict[str, Any]:
            return await arun(body(state))

        # Without a signature, LangChain would inspect the functions at each call.
        functions: tuple[Any, Any] = call, acall
        for function in functions:
            function.__signature__ = _ONE_ARGUMENT
        super().__init__(call, afunc=acall, name=body.__name__)


class RunSpans(BaseCallbackHandler):
    """A callback handler that opens a span for each run of a graph.

    The spans of the run's nodes are children of this span. A ``with`` block cannot open the span,
    since no block encloses a streamed run of LangGraph.
    """

    run_inline = True

    def __init__(self) -> None:
        # Maps the id of a graph's run, and of each run within it, to the graph run's id and span.
        self._roots: dict[UUID, tuple[UUID, Any]] = {}

    @property
    def ignore_chain(self) -> bool:
        """True if no tracer records spans."""
        return spans.tracer() is None

    def on_chain_start(
        self,
        serialized: Any,
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """Open a span for a graph's run; map a run within it to the graph's run."""
        if parent_run_id in self._roots:
            self._roots[run_id] = self._roots[parent_run_id]
            return
        attributes = {spans.OPERATION: "invoke_agent", "gen_ai.agent.name": NAME}
        if isinstance(inputs, dict):
            question = inputs.get("question", "")
            attributes |= spans.content_attributes({"casewright.question": question})
        span = spans.tracer().start_span(f"invoke_agent {NAME}", attributes=attributes)
        self._roots[run_id] = run_id, span

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Close the span if the run that ended is the graph's."""
        root_id, span = self._roots.pop(run_id, _NO_SPAN)
        if root_id == run_id:
            # Cancelled inner runs get no end event, so their entries are removed here.
            for inner_id in [id_ for id_, root in self._roots.items() if root[0] == root_id]:
                del self._roots[inner_id]
            span.end()

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Close the span as failed if the run that failed is the graph's."""
        root_id, span = self._roots.get(run_id, _NO_SPAN)
        if root_id == run_id:
            from opentelemetry.trace import StatusCode

            span.set_attribute("error.type", type(error).__name__)
            span.set_status(StatusCode.ERROR)
        self.on_chain_end(None, run_id=run_id)

    def under_graph_span(self, config: RunnableConfig | None) -> AbstractContextManager[Any]:
        """Return a context manager: spans opened within it are children of the graph's span."""
        parent_run_id: Any = getattr((config or {}).get("callbacks"), "parent_run_id", None)
        _, span = self._roots.get(parent_run_id, _NO_SPAN)
        if span is None:
            return nullcontext()
        from opentelemetry.trace import use_span

        return use_span(span, record_exception=False, set_status_on_exception=False)


RUN_SPANS = RunSpans()


class TracedNode(BodyNode):
    """A ``BodyNode`` with tracing; ``has_plan`` is True if the state holds the plan of this run."""

    def __init__(self, body: Callable[[Any], Body[dict[str, Any]]], *, has_plan: bool) -> None:
        super().__init__(body)
        self.has_plan = has_plan

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run the node."""
        with RUN_SPANS.under_graph_span(config):
            return super().invoke(input, self._with_metadata(input, config), **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run the node, without blocking the event loop."""
        with RUN_SPANS.under_graph_span(config):
            return await super().ainvoke(input, self._with_metadata(input, config), **kwargs)

    def _with_metadata(self, state: Any, config: RunnableConfig | None) -> RunnableConfig:
        metadata: dict[str, Any] = {SCOPE: sorted(map(str, run_context().scope))}
        # Before planning, the state still has the plan of the thread's previous question.
        if self.has_plan:
            metadata[RUN], metadata[PLAN] = state["run_id"], state["plan"]
            metadata[PLANNER] = state["planning"]["name"]
        return merge_configs(config, {"metadata": metadata})


def start_in_step(step: str, tool: str, start: Callable[[], Task]) -> Task:
    """Start a step's task; the metadata of runs within the task names the step and the tool."""
    config = get_config()
    manager = config.get("callbacks")
    if not isinstance(manager, BaseCallbackManager):
        return start()
    step_manager = manager.copy()
    step_manager.add_metadata({STEP: step, TOOL: tool})
    with set_config_context({**config, "callbacks": step_manager}) as context:
        return context.run(start)


def traced_plan(planner: Planner, request: PlanRequest, seconds: float | None) -> Body[PlanResult]:
    """Plan within a span; raise ``TimeoutError`` after ``seconds``."""
    with spans.span("plan", NAME, {"gen_ai.agent.name": NAME}) as add_attributes:
        result = yield Work(lambda: planner.plan(request), lambda: planner.aplan(request), seconds)
        attributes = {
            "casewright.planner": result.planner,
            "casewright.plan.steps": len(result.plan.steps),
            "casewright.plan.attempts": result.attempts,
            "casewright.plan.fallback": bool(result.fallback),
        }
        content = spans.content_attributes({"casewright.plan": str(result.plan)})
        add_attributes({**attributes, **_usage_attributes(result.tokens), **content})
        return cast("PlanResult", result)


def traced_generation(
    generator: Generator, request: GenerationRequest, seconds: float | None
) -> Body[Generation]:
    """Generate an answer within a span; raise ``TimeoutError`` after ``seconds``."""
    with spans.span("generate_content", generator.name) as add_attributes:
        generation = yield Work(
            lambda: generator.generate(request), lambda: generator.agenerate(request), seconds
        )
        content = spans.content_attributes({"casewright.answer": generation.text})
        add_attributes({**_usage_attributes(generation.tokens), **content})
        return cast("Generation", generation)


def _usage_attributes(tokens: Mapping[str, int]) -> dict[str, int]:
    return {f"gen_ai.usage.{name}_tokens": count for name, count in tokens.items()}


def step_span(step: str, call: Call) -> AbstractContextManager[Any]:
    """Return a span for a step's tool call; after the call, add ``call_attributes`` to the span."""
    attributes = {
        "gen_ai.tool.name": call.tool.name,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": step,
        **spans.content_attributes({"gen_ai.tool.call.arguments": call.arguments}),
    }
    return spans.span("execute_tool", call.tool.name, attributes)


def call_attributes(call: Call) -> dict[str, Any]:
    """Return the attributes that a call's span gets after the call."""
    error_type = "timeout" if call.timed_out else "tool_error"
    return {
        "casewright.results": len(call.rows),
        "casewright.attempts": call.attempts,
        **({"error.type": error_type} if call.error else {}),
        **spans.content_attributes({"gen_ai.tool.call.result": list(call.rows)}),
    }
