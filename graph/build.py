"""The compiled graph: plan → execute → generate."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph._internal._constants import CONFIG_KEY_CHECKPOINTER, CONFIG_KEY_DURABILITY
from langgraph.config import get_config, get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from casewright.graph import traces
from casewright.graph.answer import Answer
from casewright.graph.call import since
from casewright.graph.checkpoint_reading import strict
from casewright.graph.evidence import collect, shortfalls
from casewright.graph.execute import Execution
from casewright.graph.extractive import ExtractiveGenerator
from casewright.graph.generator import GenerationRequest, Generator, checked
from casewright.graph.limits import Limits
from casewright.graph.outcome import Outcome
from casewright.graph.state import AskInput, AskOutput, RunContext, RunState, run_context
from casewright.graph.traces import TracedNode
from casewright.planner import Planner, PlanRequest, parse_plan
from casewright.tools import CallContext, Toolbox
from casewright.tools.body import Body, Work

Graph = CompiledStateGraph[RunState, RunContext, AskInput, AskOutput]
#: Threads beside the steps' own: the node, and LangGraph's stream.
_SPARE_THREADS = 4


def build_graph(
    toolbox: Toolbox,
    planner: Planner,
    generator: Generator | None = None,
    *,
    limits: Limits | None = None,
    checkpointer: Any = None,
) -> Graph:
    """Compile the graph that plans, executes and answers.

    It is invoked with ``AskInput`` and, where tools need to know the user, a ``RunContext``; it
    returns ``AskOutput``, read by ``Answer.from_state``. With ``stream_mode="custom"`` it yields
    events: ``plan``, ``step_started``, ``step_report``, ``step_ended``, ``answer``.

    Args:
        toolbox: The tools.
        planner: Writes the plan.
        generator: Words the answer; by default it quotes the evidence.
        limits: The budgets.
        checkpointer: By default none is compiled in: a program that embeds the graph supplies one,
            and then had better run it with ``durability="sync"``, as is done here with one. The
            checkpointer reads nothing but plain values; see ``strict``.

    Raises (when invoked):
        InputError: Question, context or run context are unusable.
        PlanError: The planner's plan, or an edited one, is not valid for the request: nothing of
            it is run.
    """
    nodes = _Nodes(toolbox, planner, generator or ExtractiveGenerator(), limits or Limits())
    graph = StateGraph(
        RunState, context_schema=RunContext, input_schema=AskInput, output_schema=AskOutput
    )
    graph.add_node("plan", TracedNode(nodes.plan, planned=False))
    graph.add_node("execute", TracedNode(nodes.execute, planned=True))
    graph.add_node("generate", TracedNode(nodes.generate, planned=True))
    graph.add_edge(START, "plan")
    graph.add_edge("plan", "execute")
    graph.add_edge("execute", "generate")
    graph.add_edge("generate", END)
    compiled = graph.compile(checkpointer=strict(checkpointer), name=traces.NAME)
    # A synchronous run gives every step a thread; a step that waits holds its own.
    config: RunnableConfig = {
        "max_concurrency": nodes.limits.steps + _SPARE_THREADS,
        "tags": [traces.TAG],
        "callbacks": [traces.RUNS],
    }
    if checkpointer is not None:
        # LangGraph saves while the next node runs, by default: a run killed then would be resumed
        # with another plan and other keys. No tool is called before its plan is saved.
        config["configurable"] = {CONFIG_KEY_DURABILITY: "sync"}
    return compiled.with_config(config)


def nested_config(outer: RunnableConfig) -> RunnableConfig:
    """Return the config for a run of the graph inside the run of ``outer``.

    LangGraph saves while the next node runs, by default: a run killed then would call tools again
    that have been called. So results are saved at once, unless the outer run chose otherwise. Its
    bound of concurrency is for its own nodes, or for a batch, and not for a plan's steps.
    """
    config: Any = {name: value for name, value in outer.items() if name != "max_concurrency"}
    configurable = outer.get("configurable", {})
    if configurable.get(CONFIG_KEY_CHECKPOINTER):
        config["configurable"] = {CONFIG_KEY_DURABILITY: "sync", **configurable}
    return cast("RunnableConfig", config)


@dataclass(frozen=True)
class _Nodes:
    """The three nodes, each as the body of a blocking and of an awaiting call."""

    toolbox: Toolbox
    planner: Planner
    generator: Generator
    limits: Limits

    def plan(self, state: RunState) -> Body[dict[str, Any]]:
        planner, request = run_context().planner or self.planner, self._request(state)
        result = yield Work(
            lambda: traces.planned(planner, request), lambda: traces.aplanned(planner, request)
        )
        planning = result.to_json()
        get_stream_writer()({"event": "plan", "plan": str(result.plan), "planner": planning})
        return {"plan": str(result.plan), "planning": planning, "run_id": str(uuid.uuid4())}

    def execute(self, state: RunState) -> Body[dict[str, Any]]:
        context, request = run_context(), self._request(state)
        plan = parse_plan(str(state["plan"]))
        # A planner of another package, or an edit of the state, may have written it.
        request.validate(plan)
        execution = Execution(
            plan=plan,
            toolbox=request.toolbox,
            question=request.question,
            context=request.context,
            caller=CallContext(
                run_id=state["run_id"], question=request.question, scope=dict(context.scope)
            ),
            limits=self.limits.within(context.limits),
            write=get_stream_writer(),
        )
        return {"outcomes": (yield Work(lambda: execution.run(get_config()), execution.arun))}

    def generate(self, state: RunState) -> Body[dict[str, Any]]:
        started = time.perf_counter()
        generator = self.generator
        outcomes = [Outcome.from_json(outcome) for outcome in state["outcomes"]]
        toolbox = run_context().toolbox or self.toolbox
        request = GenerationRequest(
            question=state["question"],
            evidence=collect(parse_plan(state["plan"]), outcomes, toolbox),
            missing=shortfalls(outcomes),
            history=_value(state, "history", ()),
        )
        generation = yield Work(
            lambda: traces.generated(generator, request),
            lambda: traces.agenerated(generator, request),
        )
        text, citations = generation.text, generation.citations
        if citations is None:
            text, citations = checked(text, request.evidence)
        ends = [step["started"] + step["milliseconds"] for step in state["outcomes"]]
        answer = Answer(
            text=text,
            citations=list(citations),
            evidence=[item.to_json() for item in request.evidence],
            missing=list(request.missing),
            plan=state["plan"],
            planner=state["planning"],
            generator=generation.generator or generator.name,
            steps=state["outcomes"],
            usage={
                "planning_ms": state["planning"]["milliseconds"],
                "execution_ms": round(max(ends, default=0.0), 3),
                "generation_ms": since(started),
                "planner_tokens": state["planning"]["tokens"],
                "generator_tokens": dict(generation.tokens),
            },
            run_id=state["run_id"],
        ).to_json()
        usage = answer["usage"]
        get_stream_writer()(
            {"event": "answer", "text": text, "citations": list(citations), "usage": usage}
        )
        # The next question on this thread starts with a context and a history of its own.
        return {"answer": answer, "context": {}, "history": []}

    def _request(self, state: RunState) -> PlanRequest:
        context = run_context()
        return PlanRequest(
            question=state.get("question", ""),
            toolbox=context.toolbox or self.toolbox,
            context=_value(state, "context", {}),
            history=_value(state, "history", ()),
            max_steps=self.limits.within(context.limits).steps,
        )


def _value(state: RunState, name: str, empty: Any) -> Any:
    value = state.get(name)
    return empty if value is None else value
